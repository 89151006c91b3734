import { didYouMean } from '../../shared/did-you-mean.ts'
import { Fault } from '../../shared/fault.ts'
import { ACCESS, type Access, SCOPES, type Scope } from '../../manage/http/access/principal.ts'
import { USAGE } from '../../terminal/arguments.ts'
import type { Arguments, Option } from '../../terminal/command.ts'
import type { Store } from '../../store/store.ts'
import { type App, DEFAULT_APP } from '../../apps/app.ts'
import { ALL_APPS, APP_LIST_MAX, type AppList } from '../../apps/app-scope.ts'

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

export const APP_OPTION: Option = {
  name: 'app',
  value: 'ID',
  description:
    'Only objects of this app; repeatable (default: all apps). default: requests that matched no app',
}

/** The apps given by `--app`, one by one. `configured`: those of the settings. Throws a Fault for unknown ids. */
export async function appsIn(
  given: Arguments,
  store: Pick<Store, 'apps'>,
  configured: readonly Pick<App, 'id'>[],
): Promise<AppList> {
  const ids = [...new Set(given.values('app'))]
  if (ids.length === 0 || (ids.length === 1 && ids[0] === ALL_APPS)) return ALL_APPS
  if (ids.length > APP_LIST_MAX) throw new Fault(USAGE, `--app: at most ${APP_LIST_MAX} apps`)
  const known = [DEFAULT_APP, ...[...configured, ...(await store.apps.all())].map(({ id }) => id)]
  const wrong = ids.find((id) => !known.includes(id))
  if (wrong !== undefined) throw new Fault(USAGE, `--app: unknown app "${wrong}"${didYouMean(wrong, known)}`)
  return ids
}

export function appsText(apps: AppList): string {
  return apps === ALL_APPS ? 'all' : apps.join(',')
}

/** For the line about what was made: empty for all apps. */
export function limitText(apps: AppList): string {
  return apps === ALL_APPS ? '' : `; apps ${apps.join(', ')}`
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
