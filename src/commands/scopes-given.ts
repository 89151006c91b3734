import { didYouMean } from '../did-you-mean.ts'
import { Fault } from '../fault.ts'
import { SCOPES, type Scope } from '../manage/auth/principal.ts'
import { USAGE } from './arguments.ts'

/** The value of `--scopes`: `read,detect`. */
export function scopesIn(text: string): readonly Scope[] {
  const scopes = new Set<Scope>()
  for (const word of text.split(',').map((each) => each.trim())) {
    const scope = SCOPES.find((each) => each === word)
    if (scope === undefined)
      throw new Fault(USAGE, `--scopes takes ${SCOPES.join(', ')}, not "${word}"${didYouMean(word, SCOPES)}`)
    scopes.add(scope)
  }
  return [...scopes]
}
