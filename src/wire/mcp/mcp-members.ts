/** Where a member stands in a message. */
export type Level = 'message' | 'params' | 'meta'

/** A member that is read. */
export interface Member {
  readonly written: string
  readonly as: string
  /** By level and name. */
  readonly place: string
}

interface Members {
  readonly byName: ReadonlyMap<string, Member>
  readonly lengths: ReadonlySet<number>
}

function members(level: Level, ...names: readonly (readonly [written: string, as: string])[]): Members {
  const all = names.map(([written, as]) => ({ written, as, place: `${level} ${as}` }))
  return {
    byName: new Map(all.map((member) => [folded(member.written), member])),
    lengths: new Set(all.map(({ written }) => written.length)),
  }
}

export const MEMBERS: Readonly<Record<Level, Members>> = {
  message: members('message', ['id', 'id'], ['method', 'method'], ['params', 'params']),
  params: members('params', ['name', 'name'], ['uri', 'uri'], ['taskId', 'taskId'], ['_meta', 'meta']),
  meta: members('meta', ['io.modelcontextprotocol/protocolVersion', 'version']),
}

/** Equal for names that differ only in case, as parsers that ignore it compare them. */
export function folded(name: string): string {
  return name.toUpperCase().toLowerCase()
}
