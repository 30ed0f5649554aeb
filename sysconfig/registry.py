"""Every knob, in the order of applying; restoring goes the other way."""

from utterd.sysconfig.knob import Knob
from utterd.sysconfig.knobs.conflicts import Conflicts
from utterd.sysconfig.knobs.energy import Energy
from utterd.sysconfig.knobs.governor import Governor
from utterd.sysconfig.knobs.gpu_clocks import GpuClocks
from utterd.sysconfig.knobs.gpu_persistence import GpuPersistence
from utterd.sysconfig.knobs.gpu_power import GpuPower
from utterd.sysconfig.knobs.idle import Idle
from utterd.sysconfig.knobs.interrupts import Interrupts
from utterd.sysconfig.knobs.irqbalance import Irqbalance
from utterd.sysconfig.knobs.isolation import Isolation
from utterd.sysconfig.knobs.memory import Memory
from utterd.sysconfig.knobs.network import Network
from utterd.sysconfig.knobs.numa import Numa
from utterd.sysconfig.knobs.pcie import Pcie

KNOBS: tuple[Knob, ...] = (
    Conflicts(),
    # A ban comes before the interrupts it protects, and is lifted after they are back.
    Irqbalance(),
    Interrupts(),
    # Preference before governor: see `energy`.
    Energy(),
    Governor(),
    Idle(),
    Isolation(),
    Network(),
    # Locked clocks are lost with the driver: persistence first.
    GpuPersistence(),
    GpuClocks(),
    GpuPower(),
    Pcie(),
    Numa(),
    Memory(),
)
BY_NAME = {knob.name: knob for knob in KNOBS}
