import { jsonSchemaOf } from '../api/tools.ts'
import { TOOLS } from '../api/operations.ts'
import type { RequestContext } from '../http/router.ts'
import { resourceUrl } from '../http/access/resources.ts'
import { ROUTES } from '../auth/oauth/routes.ts'
import { publicDocuments } from '../http/front/public-document.ts'
import { capabilities, MCP_PATH, PROTOCOL_VERSION, SERVER } from './offer.ts'

/**
 * Serves the documents that MCP clients and registries use to discover the server. They need no database.
 * Returns `false` if the request is for another path.
 */
export function mcpDocuments(publicUrl: string, version: string): (ctx: RequestContext) => boolean {
  const documents = new Map([
    ['/.well-known/mcp.json', JSON.stringify(discovery(publicUrl, version))],
    ['/.well-known/mcp/server.json', JSON.stringify(registryEntry(publicUrl, version))],
  ])
  return publicDocuments(documents)
}

function discovery(publicUrl: string, version: string) {
  return {
    name: SERVER.name,
    version,
    description: SERVER.description,
    protocol_version: PROTOCOL_VERSION,
    capabilities: capabilities(false),
    endpoint: resourceUrl(publicUrl, 'mcp'),
    token_endpoint: publicUrl + ROUTES.token,
    tools: TOOLS.list.map(({ name, description, input }) => ({
      name,
      description,
      inputSchema: jsonSchemaOf(input, 'input'),
    })),
  }
}

/** For the MCP registry or a private one. The publisher proves there that it owns the name. */
function registryEntry(publicUrl: string, version: string) {
  return {
    $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
    name: `${reversed(new URL(publicUrl).hostname)}/${SERVER.name}`,
    title: SERVER.title,
    description: SERVER.description,
    version,
    websiteUrl: `${publicUrl}/docs`,
    remotes: [
      {
        type: 'streamable-http',
        url: publicUrl + MCP_PATH,
        headers: [
          {
            name: 'Authorization',
            description: 'Bearer and an API key with the scope mcp. Clients that use OAuth need none.',
            isRequired: false,
            isSecret: true,
          },
        ],
      },
    ],
  }
}

/**
 * Reverses `gate.example.com` to `com.example.gate`. An IP address cannot be published, so it becomes
 * `localhost`.
 */
function reversed(host: string): string {
  const labels = host.split('.')
  return host.startsWith('[') || /^\d+$/.test(labels.at(-1)!) ? 'localhost' : labels.toReversed().join('.')
}
