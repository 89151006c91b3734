import assert from 'node:assert/strict'
import { auth, type OAuthClientProvider, UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type {
  OAuthClientInformationFull,
  OAuthClientInformationMixed,
  OAuthTokens,
} from '@modelcontextprotocol/sdk/shared/auth.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import * as jose from 'jose'
import { test } from 'tap'
import { TestManagement } from './management.ts'
import { TestBrowser, TestPeople } from './oauth-people.ts'

const REDIRECT = 'http://127.0.0.1:49152/callback'

/** What an MCP client keeps. */
class McpClient implements OAuthClientProvider {
  readonly redirectUrl = REDIRECT
  sentTo: URL | null = null
  saved: OAuthTokens | undefined
  #information: OAuthClientInformationMixed | undefined
  #verifier = ''

  get clientMetadata() {
    return {
      client_name: 'an MCP client',
      redirect_uris: [REDIRECT],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    }
  }

  clientInformation(): OAuthClientInformationMixed | undefined {
    return this.#information
  }

  saveClientInformation(information: OAuthClientInformationFull): void {
    this.#information = information
  }

  tokens(): OAuthTokens | undefined {
    return this.saved
  }

  saveTokens(tokens: OAuthTokens): void {
    this.saved = tokens
  }

  redirectToAuthorization(url: URL): void {
    this.sentTo = url
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier
  }

  codeVerifier(): string {
    return this.#verifier
  }
}

test("the MCP SDK's own client finds its way: metadata, registration, sign-in, consent, a token, a fresh one", async (t) => {
  const people = new TestPeople()
  const settings = { accessTokenTtlS: 600, keyRotationMs: 86_400_000, registrationToken: null }
  const manage = await TestManagement.start(t, { people, oauth: { ...settings, registration: 'open' } })
  const client = new McpClient()
  const serverUrl = `${manage.url}/mcp`
  assert.equal(await auth(client, { serverUrl }), 'REDIRECT')
  const { away } = await new TestBrowser(manage.url).open(client.sentTo!.href)
  assert.equal(away?.origin + away!.pathname, REDIRECT)
  const authorizationCode = away!.searchParams.get('code')!
  assert.equal(await auth(client, { serverUrl, authorizationCode }), 'AUTHORIZED')
  const first = client.saved!
  const claims = jose.decodeJwt(first.access_token)
  assert.deepEqual([claims.aud, claims.sub, claims['scope']], [serverUrl, 'usr_1', 'read detect mcp'])
  // A token for the MCP endpoint is none for the API.
  const bearer = { authorization: `Bearer ${first.access_token}` }
  assert.equal((await manage.ask('GET', '/v1/agents', undefined, bearer)).status, 401)
  const transport = new StreamableHTTPClientTransport(new URL(serverUrl), { authProvider: client })
  const mcp = new Client({ name: 'an MCP client', version: '1.0.0' })
  t.teardown(() => mcp.close())
  await mcp.connect(transport as Transport)
  const { structuredContent } = await mcp.callTool({ name: 'list_agents', arguments: { limit: 1 } })
  assert.equal((structuredContent as { limit: number }).limit, 1)
  // What needs more than it may is answered with what to ask the user for, and the client does.
  const { refresh_token: _, ...withoutRefresh } = first
  client.saved = withoutRefresh
  await assert.rejects(mcp.readResource({ uri: 'gatehouse://policy' }), UnauthorizedError)
  assert.equal(client.sentTo?.searchParams.get('scope'), 'mcp admin read detect')
  client.saved = first
  assert.equal(await auth(client, { serverUrl }), 'AUTHORIZED')
  assert.notEqual(client.saved!.refresh_token, first.refresh_token)
  assert.deepEqual(manage.failures, [])
})
