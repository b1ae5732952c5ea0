// Supplies the classes that Debian's package of olap4j 1.2 lacks: the parents of its JDBC 4.1 classes.
//
// Their further JDBC methods are those that the driver itself does not call, so they stay abstract.

package org.olap4j.driver.xmla;

import java.sql.SQLException;
import java.util.List;
import java.util.Properties;
import org.olap4j.OlapException;
import org.olap4j.driver.xmla.proxy.XmlaOlap4jProxy;

class FactoryJdbc4Plus {
    abstract static class AbstractEmptyResultSet extends EmptyResultSet {
        AbstractEmptyResultSet(XmlaOlap4jConnection connection, List<String> headers, List<List<Object>> rows) {
            super(connection, headers, rows);
        }
    }

    abstract static class AbstractCellSet extends XmlaOlap4jCellSet {
        AbstractCellSet(XmlaOlap4jStatement statement) throws OlapException {
            super(statement);
        }
    }

    abstract static class AbstractConnection extends XmlaOlap4jConnection {
        AbstractConnection(
                Factory factory, XmlaOlap4jDriver driver, XmlaOlap4jProxy proxy, String url, Properties properties)
                throws SQLException {
            super(factory, driver, proxy, url, properties);
        }
    }

    abstract static class AbstractDatabaseMetaData extends XmlaOlap4jDatabaseMetaData {
        AbstractDatabaseMetaData(XmlaOlap4jConnection connection) {
            super(connection);
        }
    }

    abstract static class AbstractPreparedStatement extends XmlaOlap4jPreparedStatement {
        AbstractPreparedStatement(XmlaOlap4jConnection connection, String mdx) throws OlapException {
            super(connection, mdx);
        }
    }
}
