import java.sql.DriverManager;
import java.util.ArrayList;
import java.util.List;
import org.olap4j.OlapConnection;
import org.olap4j.metadata.Cube;
import org.olap4j.metadata.Dimension;
import org.olap4j.metadata.Hierarchy;
import org.olap4j.metadata.Level;
import org.olap4j.metadata.Measure;

/** Reads a project with olap4j, and prints what the driver got, one fact a line. */
public class Metadata {
    public static void main(String[] arguments) throws Exception {
        Class.forName("org.olap4j.driver.xmla.XmlaOlap4jDriver");
        String url = "jdbc:xmla:Server=" + arguments[0] + "/api/v1/dax/xmla";
        OlapConnection connection =
            DriverManager.getConnection(url, "anybody", arguments[1]).unwrap(OlapConnection.class);
        System.out.println("product " + connection.getMetaData().getDatabaseProductName());
        System.out.println("catalog " + connection.getOlapCatalog().getName());
        for (Cube cube : connection.getOlapSchema().getCubes()) {
            System.out.println("cube " + cube.getName());
            if (!cube.getName().equals("flights")) {
                continue;
            }
            for (Dimension dimension : cube.getDimensions()) {
                System.out.println("dimension " + dimension.getUniqueName() + " " + dimension.getDimensionType());
                for (Hierarchy hierarchy : dimension.getHierarchies()) {
                    List<String> levels = new ArrayList<>();
                    for (Level level : hierarchy.getLevels()) {
                        levels.add(level.getName() + ":" + level.getLevelType());
                    }
                    System.out.println("hierarchy " + hierarchy.getUniqueName() + " " + levels);
                }
            }
            for (Measure measure : cube.getMeasures()) {
                System.out.println("measure " + measure.getName() + " " + measure.getAggregator());
            }
        }
        connection.close();
    }
}
