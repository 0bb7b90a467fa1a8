"""The former place of two declarations, which installations from before name as entry points."""

from kgqa.methods.counselor.declarations import COUNSELOR as COUNSELOR
from kgqa.methods.evograph.declarations import EVOGRAPH as EVOGRAPH
