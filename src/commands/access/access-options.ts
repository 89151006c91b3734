import { didYouMean } from '../../shared/did-you-mean.ts'
import { Fault } from '../../shared/fault.ts'
import { ACCESS, type Access, SCOPES, type Scope } from '../../manage/http/access/principal.ts'
import { USAGE } from '../../terminal/arguments.ts'
import type { Arguments } from '../../terminal/command.ts'

// Options that the commands for keys, clients, users and trust share.

/** The scopes given by `--access` or `--scopes`. */
export function accessIn(given: Arguments): readonly Scope[] {
  const [access, listed] = [given.value('access'), given.value('scopes')]
  if ((access === null) === (listed === null)) throw new Fault(USAGE, 'give --access or --scopes')
  return access === null ? wordsIn(listed!, '--scopes', SCOPES) : ACCESS[access as Access]
}

export function scopesIn(given: Arguments): readonly Scope[] {
  const listed = given.value('scopes')
  if (listed === null) throw new Fault(USAGE, '--scopes is missing')
  return wordsIn(listed, '--scopes', SCOPES)
}

/** Parses a list of words without duplicates. */
export function wordsIn<Word extends string>(
  text: string,
  option: string,
  choices: readonly Word[],
): readonly Word[] {
  const words = new Set<Word>()
  for (const word of text.split(',').map((each) => each.trim())) {
    const known = choices.find((each) => each === word)
    if (known === undefined)
      throw new Fault(
        USAGE,
        `${option} must be one of ${choices.join(', ')}, not "${word}"${didYouMean(word, choices)}`,
      )
    words.add(known)
  }
  return [...words]
}

export function nameIn(given: Arguments): string {
  const name = optionalNameIn(given)
  if (name === null) throw new Fault(USAGE, '--name is missing')
  return name
}

export function optionalNameIn(given: Arguments): string | null {
  const name = given.value('name')
  if (name !== null && !NAME.test(name))
    throw new Fault(USAGE, '--name must have 1 to 100 characters, no control characters')
  return name
}

/** RFC 3339. */
export function timeText(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}

const NAME = /^\P{Cc}{1,100}$/u
