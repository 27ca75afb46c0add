"""What a person does with the page in a browser, and what can be read there."""


def open_page(driver, page, fragment=""):
    driver.get("about:blank")
    driver.get_log("browser"), driver.get_log("performance")
    driver.get(page.as_uri() + fragment)
    settle(driver)


def settle(driver):
    """Two frames later, plots on the screen have been drawn."""
    driver.execute_async_script(
        "const done = arguments[0]; setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 150)"
    )


def resize(driver, width, height=800):
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    settle(driver)


def show(driver, selector):
    driver.execute_script("document.querySelector(arguments[0]).scrollIntoView()", selector)
    settle(driver)


def count(driver, selector):
    return driver.execute_script("return document.querySelectorAll(arguments[0]).length", selector)


def texts(driver, selector):
    script = "return Array.from(document.querySelectorAll(arguments[0])).map(e => e.textContent.trim())"
    return driver.execute_script(script, selector)


def click(driver, selector):
    driver.execute_script("document.querySelector(arguments[0]).click()", selector)
    settle(driver)


def rows(driver, within):
    script = (
        "return Array.from(document.querySelector(arguments[0] + ' tbody').rows).filter(row => !row.hidden)"
        ".map(row => Array.from(row.cells).map(cell => cell.innerText))"
    )
    return driver.execute_script(script, within)


def press(driver, key):
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(driver).send_keys(key).perform()
    settle(driver)


def is_quiet(driver):
    return driver.get_log("browser") == []


def theme(driver, scheme):
    feature = {"name": "prefers-color-scheme", "value": scheme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
