"""The version of the package."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("terrane")
except PackageNotFoundError:  # the source tree without an installation
    __version__ = "0+unknown"
