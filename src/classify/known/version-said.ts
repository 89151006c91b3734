import type { UserAgentIndex } from './user-agent.ts'

/**
 * The version that a User-Agent states for a Software: the number after its name, as in `GPTBot/1.2` and
 * `OpenAI/Python 1.30.1`. `null`: no version.
 */
export function versionSaid(index: UserAgentIndex, software: string, userAgent: string): string | null {
  for (const { software: named, text, at } of index.matches(userAgent)) {
    if (named.id !== software) continue
    VERSION.lastIndex = at + text.length
    const version = VERSION.exec(userAgent)?.[1]
    if (version !== undefined) return version
  }
  return null
}

/** At most 32 characters. The name may end with the slash, and some versions begin with `v`. */
const VERSION = /(?:(?<=\/)|[/ ])v?(\d(?:[\w.-]{0,30}\w)?)(?![.-]*\w)/iy
