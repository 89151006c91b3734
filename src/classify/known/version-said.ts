import type { UserAgentIndex } from './user-agent.ts'

/**
 * Which version of a Software its User-Agent says it is: what stands behind words that name it, as in `GPTBot/1.2` and
 * `OpenAI/Python 1.30.1`. `null`: it says none.
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

/** Of 32 characters at most. The words may end with the stroke, and some have a `v` before the number. */
const VERSION = /(?:(?<=\/)|[/ ])v?(\d(?:[\w.-]{0,30}\w)?)(?![.-]*\w)/iy
