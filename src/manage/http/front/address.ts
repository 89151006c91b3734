/** The path in an address as it was sent: Koa's own `path` throws on what is no URL. */
export function pathIn(url: string): string {
  const end = url.indexOf('?')
  return end === -1 ? url : url.slice(0, end)
}
