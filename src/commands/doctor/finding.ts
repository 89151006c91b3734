/** The result of one check, and how to fix it. */
export interface CheckResult {
  /** The subject: `port 8443`, `database`. */
  readonly about: string
  readonly state: State
  readonly what: string
  /** How to fix it; `null`: nothing to fix. */
  readonly fix: string | null
}

/** `skipped`: the check was not possible or does not apply. */
export type State = 'good' | 'warning' | 'bad' | 'skipped'

export function good(about: string, what: string): CheckResult {
  return { about, state: 'good', what, fix: null }
}

export function warning(about: string, what: string, fix: string): CheckResult {
  return { about, state: 'warning', what, fix }
}

export function bad(about: string, what: string, fix: string): CheckResult {
  return { about, state: 'bad', what, fix }
}

export function skipped(about: string, what: string): CheckResult {
  return { about, state: 'skipped', what, fix: null }
}
