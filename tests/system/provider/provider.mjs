// An OpenID Connect provider for one test: `node provider.mjs MODULES PORT KID CALLBACK`.
//
// At its start, it creates a signing key with the given id. A second start with another id is therefore a rotation of
// keys. Users sign in by their name alone, on the provider's development pages. Their claims are made from the name.
import { generateKeyPairSync } from 'node:crypto';
import { pathToFileURL } from 'node:url';

const [modules, port, kid, callback] = process.argv.slice(2);
const { Provider } = await import(pathToFileURL(`${modules}/oidc-provider/lib/index.js`).href);

const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' });
const issuer = `http://127.0.0.1:${port}`;
const region = (name) => ({ terrane: { region: name === 'ada' ? 'US' : 'EU' } });

const provider = new Provider(issuer, {
  jwks: { keys: [{ ...key, kid, use: 'sig', alg: 'RS256' }] },
  cookies: { keys: ['a key for the cookies of a test'] },
  clients: [
    {
      client_id: 'terrane',
      client_secret: 'a secret: of/the+client',
      redirect_uris: [callback],
      grant_types: ['authorization_code'],
      response_types: ['code'],
      token_endpoint_auth_method: 'client_secret_basic',
    },
    {
      client_id: 'robot',
      client_secret: 'a secret of the robot',
      redirect_uris: [],
      grant_types: ['client_credentials'],
      response_types: [],
      token_endpoint_auth_method: 'client_secret_post',
    },
  ],
  pkce: { required: () => true },
  conformIdTokenClaims: false,
  claims: { openid: ['sub'], email: ['email', 'email_verified'], data: ['realm_access', 'terrane'] },
  scopes: ['openid', 'email', 'data'],
  findAccount: (_, name) => ({
    accountId: name,
    claims: () => ({
      sub: name,
      email: `${name}@corp.example`,
      email_verified: true,
      realm_access: { roles: name === 'grace' ? ['terrane-admin'] : ['analyst'] },
      ...region(name),
    }),
  }),
  extraTokenClaims: () => region('robot'),
  features: {
    devInteractions: { enabled: true },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: () => ({
        scope: 'read',
        audience: 'terrane-api',
        accessTokenFormat: 'jwt',
        accessTokenTTL: 600,
        jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
});

provider.listen(Number(port), '127.0.0.1', () => console.log('ready'));
