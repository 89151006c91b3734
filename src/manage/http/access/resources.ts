/** What a token can be for (RFC 8707): the API, or the MCP endpoint. */
export type Resource = 'v1' | 'mcp'

export const RESOURCES: readonly Resource[] = ['v1', 'mcp']

export function resourceUrl(publicUrl: string, resource: Resource): string {
  return `${publicUrl}/${resource}`
}

/** Whose tokens it takes: those for the API do at the MCP endpoint, too, with the scope for it. */
export function audiencesOf(publicUrl: string, resource: Resource): readonly string[] {
  const own = resourceUrl(publicUrl, resource)
  return resource === 'v1' ? [own] : [own, resourceUrl(publicUrl, 'v1')]
}

/** `https://host/.well-known/NAME/path`: between host and path (RFC 8414 §3, RFC 9728 §3). */
export function wellKnownUrl(publicUrl: string, name: string, path = ''): string {
  const { origin, pathname } = new URL(publicUrl)
  return `${origin}/.well-known/${name}${pathname === '/' ? '' : pathname}${path}`
}
