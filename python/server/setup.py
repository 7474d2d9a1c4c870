"""A wheel for one platform and any Python: it holds programs, and no extension module. scripts/wheel puts them here."""

import setuptools
from setuptools.command.bdist_wheel import bdist_wheel


class PlatformDistribution(setuptools.Distribution):
    def has_ext_modules(self):
        return True


class PlatformWheel(bdist_wheel):
    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


setuptools.setup(distclass=PlatformDistribution, cmdclass={"bdist_wheel": PlatformWheel})
