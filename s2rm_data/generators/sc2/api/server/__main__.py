"""`python -m s2rm_data.generators.sc2.api.server -listen 127.0.0.1 -port N`, as an installed folder starts it."""

import sys

from s2rm_data.errors import S2RMError
from s2rm_data.generators.sc2.api.server.serve import main

try:
    main()
except S2RMError as error:
    sys.exit(f"s2rm-data: {error}")
except KeyboardInterrupt:
    sys.exit(130)
