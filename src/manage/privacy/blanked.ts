// Events without one person. They are JSON, and of many kinds: members are found by name at any depth, as in personal-data.ts.

/** Whether a stored address is one of the person's. */
export type IsWanted = (address: string) => boolean

/** The data of an event, or a list of examples, as JSON; `null`: it has nothing of the person. */
export function blankedData(text: string, isWanted: IsWanted): string | null {
  const data: unknown = JSON.parse(text)
  return hasAddress(data, isWanted)
    ? JSON.stringify(blanked(data, isWanted, isOfPerson(data, isWanted)))
    : null
}

/** The same of the draft of an event. */
export function blankedDraft(text: string, isWanted: IsWanted): string | null {
  const draft = JSON.parse(text) as { readonly data?: unknown }
  const { data } = draft
  if (!hasAddress(data, isWanted)) return null
  return JSON.stringify({ ...draft, data: blanked(data, isWanted, isOfPerson(data, isWanted)) })
}

function hasAddress(value: unknown, isWanted: IsWanted): boolean {
  if (typeof value !== 'object' || value === null) return false
  const { address } = value as { readonly address?: unknown }
  return (
    (typeof address === 'string' && isWanted(address)) ||
    Object.values(value).some((member) => hasAddress(member, isWanted))
  )
}

/** Whether the request that caused the event is the person's. Its fingerprints are, then. */
function isOfPerson(data: unknown, isWanted: IsWanted): boolean {
  const { request, sighting } = Object(data) as { readonly request?: unknown; readonly sighting?: unknown }
  return [request, sighting].some((each) => {
    const { address } = Object(each) as { readonly address?: unknown }
    return typeof address === 'string' && isWanted(address)
  })
}

function blanked(value: unknown, isWanted: IsWanted, isCause: boolean): unknown {
  if (Array.isArray(value)) return value.map((member) => blanked(member, isWanted, isCause))
  if (typeof value !== 'object' || value === null) return value
  const { address } = value as { readonly address?: unknown }
  const isOwn = typeof address === 'string' && isWanted(address)
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      if (isOwn && OF_REQUEST.has(name)) return [name, null]
      // It ends with hashes of cookies.
      if (isCause && name === 'ja4h') return [name, '']
      return [name, blanked(member, isWanted, isCause)]
    }),
  )
}

const OF_REQUEST: ReadonlySet<string> = new Set(['address', 'path', 'user_agent'])
