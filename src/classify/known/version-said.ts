import type { UserAgentIndex } from './user-agent.ts'

/**
 * The version that a User-Agent states for a Software: the number after its name, as in `GPTBot/1.2` and
 * `OpenAI/Python 1.30.1`. `null`: no version.
 */
export function versionSaid(index: UserAgentIndex, software: string, userAgent: string): string | null {
  for (const { software: named, text, at } of index.matches(userAgent)) {
    if (named.id !== software) continue
    const version = VERSION.exec(userAgent.slice(at + text.length - 1))?.[1]
    if (version !== undefined) return version
  }
  return null
}

/**
 * It begins at the last character of the name, which may be the slash. At most 32 characters. Some versions
 * begin with `v`.
 */
const VERSION = /^(?:\/|.[/ ])v?(\d(?:[\w.-]{0,30}\w)?)(?![.-]*\w)/is
