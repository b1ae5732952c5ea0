// Reads a project with olap4j, and prints what the client got as JSON.

import java.net.Authenticator;
import java.net.PasswordAuthentication;
import java.sql.DriverManager;
import java.util.ArrayList;
import java.util.List;
import org.olap4j.OlapConnection;
import org.olap4j.OlapException;
import org.olap4j.metadata.Catalog;
import org.olap4j.metadata.Cube;
import org.olap4j.metadata.Database;
import org.olap4j.metadata.Dimension;
import org.olap4j.metadata.Hierarchy;
import org.olap4j.metadata.Level;
import org.olap4j.metadata.Measure;
import org.olap4j.metadata.Member;

public class Client {
    public static void main(String[] arguments) throws Exception {
        Class.forName("org.olap4j.driver.xmla.XmlaOlap4jDriver");
        // The driver's own credentials are encoded with line breaks from 58 bytes on, which HTTP refuses.
        Authenticator.setDefault(new Authenticator() {
            @Override
            protected PasswordAuthentication getPasswordAuthentication() {
                return new PasswordAuthentication("anybody", arguments[1].toCharArray());
            }
        });
        String address = "jdbc:xmla:Server=" + arguments[0] + "/api/v1/dax/xmla";
        try (OlapConnection connection =
                DriverManager.getConnection(address).unwrap(OlapConnection.class)) {
            List<String> fields = new ArrayList<>();
            List<String> databases = new ArrayList<>();
            for (Database database : connection.getOlapDatabases()) {
                databases.add(database.getName());
            }
            fields.add("\"databases\":" + list(databases));
            List<String> catalogs = new ArrayList<>();
            for (Catalog catalog : connection.getOlapCatalogs()) {
                catalogs.add(catalog.getName());
            }
            fields.add("\"catalogs\":" + list(catalogs));
            List<String> cubes = new ArrayList<>();
            for (Cube cube : connection.getOlapSchema().getCubes()) {
                cubes.add(cube.getName());
            }
            fields.add("\"cubes\":" + list(cubes));
            addCube(fields, connection.getOlapSchema().getCubes().get("flights"));
            fields.add("\"refused\":" + text(refusal(connection)));
            System.out.println("{" + String.join(",", fields) + "}");
        }
    }

    private static void addCube(List<String> fields, Cube cube) throws OlapException {
        List<String> measures = new ArrayList<>();
        for (Measure measure : cube.getMeasures()) {
            measures.add(measure.getName());
        }
        fields.add("\"measures\":" + list(measures));
        Dimension dimension = cube.getDimensions().get("airlines");
        fields.add("\"caption\":" + text(dimension.getCaption()));
        Hierarchy hierarchy = dimension.getHierarchies().get("name");
        List<String> levels = new ArrayList<>();
        for (Level level : hierarchy.getLevels()) {
            levels.add(level.getName());
        }
        fields.add("\"levels\":" + list(levels));
        List<String> members = new ArrayList<>();
        for (Member member : hierarchy.getLevels().get(1).getMembers()) {
            members.add(member.getName());
        }
        fields.add("\"members\":" + list(members));
        List<String> children = new ArrayList<>();
        for (Member child : hierarchy.getRootMembers().get(0).getChildMembers()) {
            children.add(child.getName());
        }
        fields.add("\"children\":" + children.size());
    }

    /** Returns the message of the server that refuses MDX. */
    private static String refusal(OlapConnection connection) {
        try {
            connection.createStatement().executeOlapQuery("SELECT {[Measures].[count]} ON COLUMNS FROM [flights]");
            return "no refusal";
        } catch (OlapException error) {
            StringBuilder messages = new StringBuilder();
            for (Throwable cause = error; cause != null; cause = cause.getCause()) {
                messages.append(cause.getMessage()).append('\n');
            }
            return messages.toString();
        }
    }

    private static String list(List<String> texts) {
        List<String> quoted = new ArrayList<>();
        for (String each : texts) {
            quoted.add(text(each));
        }
        return "[" + String.join(",", quoted) + "]";
    }

    private static String text(String value) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char each : value.toCharArray()) {
            if (each == '"' || each == '\\') {
                quoted.append('\\').append(each);
            } else if (each < ' ') {
                quoted.append(String.format("\\u%04x", (int) each));
            } else {
                quoted.append(each);
            }
        }
        return quoted.append('"').toString();
    }
}
