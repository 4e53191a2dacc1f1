"""A Python in which packages are missing that are installed: `blocked.block(["torch"])`, before anything imports them."""

import sys

ATARI = ("torch", "ale_py", "safetensors")
NOTEBOOKS = (
    "ipykernel",
    "jupyter_client",
    "jupyter_core",
    "jupyterlab",
    "nbclient",
    "nbconvert",
    "nbformat",
    "papermill",
)
COURSE = (*NOTEBOOKS, "IPython", "anywidget", "bs4", "ipywidgets", "jinja2", "pygments", "traitlets", "yaml")


class _Without:
    """A finder that does not find them."""

    def __init__(self, finder, packages):
        self.finder, self.packages = finder, frozenset(packages)

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in self.packages else self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)


def block(packages):
    """From now on an import of these fails as if they were not installed."""
    assert not set(packages) & set(sys.modules), "they are loaded already"
    sys.meta_path[:] = [_Without(finder, packages) for finder in sys.meta_path]
