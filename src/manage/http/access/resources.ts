/** The resources that a token can be issued for (RFC 8707): the API, and the MCP endpoint. */
export type Resource = 'v1' | 'mcp'

export const RESOURCES: readonly Resource[] = ['v1', 'mcp']

export function resourceUrl(publicUrl: string, resource: Resource): string {
  return `${publicUrl}/${resource}`
}

/**
 * The token audiences that a resource accepts. The MCP endpoint also accepts tokens for the API that have its
 * scope.
 */
export function audiencesOf(publicUrl: string, resource: Resource): readonly string[] {
  const own = resourceUrl(publicUrl, resource)
  return resource === 'v1' ? [own] : [own, resourceUrl(publicUrl, 'v1')]
}

/**
 * `https://host/.well-known/NAME/path`: the well-known part is between host and path (RFC 8414 §3, RFC 9728
 * §3).
 */
export function wellKnownUrl(publicUrl: string, name: string, path = ''): string {
  const { origin, pathname } = new URL(publicUrl)
  return `${origin}/.well-known/${name}${pathname === '/' ? '' : pathname}${path}`
}
