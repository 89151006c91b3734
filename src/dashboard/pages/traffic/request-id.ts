/** The id of a request in a pasted text. `null`: the text has no id. */
export function requestIdIn(text: string): string | null {
  return UUID.exec(text)?.[0].toLowerCase() ?? null
}

export function requestAt(id: string): string {
  return `/dashboard/traffic/${encodeURIComponent(id)}`
}

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/i
