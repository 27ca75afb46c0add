// Films can be paused, and begin paused where the reader prefers less motion.

function pausable(image) {
  const still = node("canvas", { class: "film", role: "img", "aria-label": image.alt });
  const button = node("button", { type: "button", class: "pause" });
  const show = (playing) => {
    if (!playing) {
      still.width = image.naturalWidth;
      still.height = image.naturalHeight;
      still.getContext("2d").drawImage(image, 0, 0);
    }
    image.hidden = !playing;
    still.hidden = playing;
    button.textContent = playing ? "Pause film" : "Play film";
    button.setAttribute("aria-label", `${button.textContent}: ${image.alt}`);
  };
  image.after(still);
  (image.closest(".film-scroll") || still).after(button);
  button.addEventListener("click", () => show(image.hidden));
  show(true);
  if (window.matchMedia("(prefers-reduced-motion: reduce)").matches) image.decode().then(() => show(false), () => {});
}

document.querySelectorAll("img.film").forEach(pausable);
