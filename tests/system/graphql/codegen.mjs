// Generates types for the documents of typed.ts from the schema of a server.
const { TERRANE_URL, TERRANE_KEY } = process.env;

export default {
  schema: { [`${TERRANE_URL}/graphql`]: { headers: { authorization: `Bearer ${TERRANE_KEY}` } } },
  documents: ["typed.ts"],
  emitLegacyCommonJSImports: false,
  generates: { "gql/": { preset: "client" } },
};
