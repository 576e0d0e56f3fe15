"""`python -m s2rm_data.server -listen 127.0.0.1 -port N`: what the launcher of an installed folder starts."""

import sys

from s2rm_data.errors import S2RMError
from s2rm_data.server.serve import main

try:
    main()
except S2RMError as error:
    sys.exit(f"s2rm-data: {error}")
except KeyboardInterrupt:
    sys.exit(130)
