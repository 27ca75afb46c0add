"""What tests of the page need to be installed."""

import pytest
from report_runs import cannot


@pytest.fixture(scope="session", autouse=True)
def plotly():
    try:
        import plotly.graph_objects as objects
    except ModuleNotFoundError:
        cannot("plotly is not installed: pip install 'steadyrl[report]'")
    return objects
