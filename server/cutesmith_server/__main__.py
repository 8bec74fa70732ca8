"""Entry point"""

import sys


def main() -> int:
    from cutesmith_server.app import create_server

    create_server().start_io()
    return 0


if __name__ == "__main__":
    sys.exit(main())
