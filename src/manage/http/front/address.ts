/** The path of a request URL as it was sent. Koa's own `path` throws if the URL is invalid. */
export function pathIn(url: string): string {
  const end = url.indexOf('?')
  return end === -1 ? url : url.slice(0, end)
}
