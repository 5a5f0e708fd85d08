"""Test suites for the interface of a store: subclass one and provide its fixture.

```python
class TestMyStore(StoreConformance):
    @pytest.fixture
    def store(self):
        return MyStore(index={"dims": 32, "embed": HashEmbeddings(dims=32), "fields": ["text"]})
```

A test may be overridden only to mark it `xfail` with a reason. The reason then documents what the
store does differently.
"""

from memguard.testing.conformance.base import Calls, Capabilities
from memguard.testing.conformance.store import StoreConformance

__all__ = ["Calls", "Capabilities", "StoreConformance"]
