from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from formulacode_dagster.images.docker_engine import DockerEngine
from formulacode_dagster.images.failures import BuildFailure
from formulacode_dagster.models.errors import ConfigurationError, ItemFailure, OutsideSystemError
from formulacode_dagster.models.image import BuiltImage, EngineName

from .conftest import LIMITS, Sample, as_image, make_spec
