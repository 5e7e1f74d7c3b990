"""A server of PostgreSQL that all tests of a session share."""

import ibis
import pytest
from table.engine.databases import running_postgres


@pytest.fixture(scope="session")
def connection():
    """Return a connection of ibis to a database of PostgreSQL."""
    with running_postgres() as url:
        if url is None:
            pytest.skip("no PostgreSQL to count in: apt-get install postgresql")
        connection = ibis.connect(url)
        yield connection
        connection.disconnect()


@pytest.fixture
def postgres(connection):
    """Return the connection, and end the transaction that counts without a fit leave open."""
    yield connection
    connection.con.rollback()
