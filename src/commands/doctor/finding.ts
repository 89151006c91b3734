/** What was found of one thing, and what to do about it. */
export interface Finding {
  /** `port 8443`, `database`: what it is about. */
  readonly about: string
  readonly state: State
  readonly what: string
  /** Where it is not good. */
  readonly fix: string | null
}

/** `skipped`: it could not be looked at, or there is no such thing here. */
export type State = 'good' | 'warning' | 'bad' | 'skipped'

export function good(about: string, what: string): Finding {
  return { about, state: 'good', what, fix: null }
}

export function warning(about: string, what: string, fix: string): Finding {
  return { about, state: 'warning', what, fix }
}

export function bad(about: string, what: string, fix: string): Finding {
  return { about, state: 'bad', what, fix }
}

export function skipped(about: string, what: string): Finding {
  return { about, state: 'skipped', what, fix: null }
}
