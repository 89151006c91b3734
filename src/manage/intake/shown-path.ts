import { ipFamily } from '../../wire/ip-address.ts'

/** Stands for a part of a path or User-Agent that may be a secret or name a person. */
export const REDACTED = '[redacted]'

/**
 * A path as callers without the scope `admin` see it. Segments that look like secrets or personal data are
 * redacted: keys, tokens, JWTs, UUIDs, long numbers, e-mail and IP addresses, and the segment after a name
 * like `reset`. Values in parameters (`;jsessionid=…`, `/token=…`) are always redacted. If in doubt, a
 * segment is redacted.
 */
export function shownPath(path: string): string {
  const end = path.search(/[?#]/)
  const segments = (end === -1 ? path : path.slice(0, end)).split('/')
  let before = ''
  return segments
    .map((segment) => {
      const shown = shownSegment(segment, before)
      before = segment.toLowerCase()
      return shown
    })
    .join('/')
}

/** A User-Agent as these callers see it. Contact addresses stay: they name the operator of a crawler. */
export function shownUserAgent(userAgent: string): string {
  return userAgent.replace(RUNS, (run) => (isRandom(run) ? REDACTED : run))
}

function shownSegment(segment: string, before: string): string {
  if (segment === '') return segment
  const [name = '', ...parameters] = segment.split(';')
  const shown = shownParameter(name, before)
  return [shown, ...parameters.map((parameter) => shownParameter(parameter, ''))].join(';')
}

/** `name`, or `name=value`. */
function shownParameter(text: string, before: string): string {
  const decoded = decodedText(text)
  if (decoded === null) return REDACTED
  const equals = decoded.indexOf('=')
  if (equals !== -1) {
    const name = decoded.slice(0, equals)
    return NAME.test(name) && !isPrivate(name) ? `${name}=${REDACTED}` : REDACTED
  }
  const followsSecret = SECRETS_FOLLOW.has(before) && HAS_DIGIT.test(decoded) && decoded.length >= 6
  return followsSecret || isPrivate(decoded) ? REDACTED : text
}

/**
 * Decodes percent-encoding twice, because some apps encode twice. `null`: malformed, or encoded more often.
 */
function decodedText(text: string): string | null {
  let decoded = text
  for (let time = 0; time < 2 && decoded.includes('%'); time++) {
    try {
      decoded = decodeURIComponent(decoded)
    } catch {
      return null
    }
  }
  return /%[0-9a-f]{2}/i.test(decoded) ? null : decoded
}

function isPrivate(text: string): boolean {
  if (EMAIL.test(text) || LONG_NUMBER.test(text) || isPhone(text)) return true
  if (ipFamily(text.replace(/^\[|\](?::\d+)?$/g, '')) !== 0 || IPV4.test(text)) return true
  return (text.match(RUNS) ?? []).some(isRandom)
}

/**
 * Whether a run of letters, digits, `-` and `_` is more likely random than written by people. Text that
 * people write seldom changes between letters and digits or from lower to upper case; random text changes at
 * every other character.
 */
function isRandom(run: string): boolean {
  if (UUID.test(run) || HEX.test(run) || LONG_WORD.test(run) || KEY_PREFIX.test(run)) return true
  let all = 0
  for (const piece of run.split(SEPARATOR)) {
    const changes = changesIn(piece)
    if (changes >= 3 && piece.length >= 10 && HAS_DIGIT.test(piece) && changes / piece.length >= 0.12)
      return true
    all += changes
  }
  if (all >= 3 && run.length >= 20 && KINDS.every((kind) => kind.test(run))) return true
  return all >= 3 && all / run.length >= 0.17
}

function changesIn(piece: string): number {
  let changes = 0
  for (let at = 1; at < piece.length; at++) {
    const [before, kind] = [kindOf(piece.charCodeAt(at - 1)), kindOf(piece.charCodeAt(at))]
    // `Aa` starts a word, so it is not a change.
    if (kind !== before && !(before === UPPER && kind === LOWER)) changes++
  }
  return changes
}

/** Nine or more digits: a date has eight. */
function isPhone(text: string): boolean {
  return PHONE.test(text) && text.replace(/\D/g, '').length >= 9
}

function kindOf(code: number): number {
  if (code >= 0x30 && code <= 0x39) return DIGIT
  if (code >= 0x41 && code <= 0x5a) return UPPER
  return LOWER
}

const UPPER = 1
const LOWER = 2
const DIGIT = 3
const SEPARATOR = /[_-]/
const KINDS = [/[a-z]/, /[A-Z]/, /\d/]
/** Shorter runs are too short for a secret. */
const RUNS = /[A-Za-z0-9_-]{12,}/g
const UUID = /[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}/i
/** With a digit and a letter. */
const HEX = /(?:^|[_-])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{16,}(?:$|[_-])/i
/** No natural language has a word this long in a path. */
const LONG_WORD = /[a-z]{36,}|[A-Z]{24,}/
/** The prefixes of GitHub, GitLab, Slack, Stripe, OpenAI, AWS, Google and Gatehouse. */
const KEY_PREFIX =
  /^(?:gh[a-z]_|github_pat_|glpat-|xox[a-z]-|[prs]k[_-](?:live|test|proj|ant)|sk-|AKIA|ASIA|AIza|eyJ)/
const EMAIL = /[^\s@]@[^\s@]/
const LONG_NUMBER = /\d{9,}/
const PHONE = /^\+?\d[\d ().-]{7,}\d$/
const IPV4 = /(?:^|[^\d.])(?:\d{1,3}\.){3}\d{1,3}(?:$|[^\d.])/
const NAME = /^[A-Za-z][\w.-]{0,31}$/
const HAS_DIGIT = /\d/
/** The segment after one of these is a secret if it has a digit and six or more characters. */
const SECRETS_FOLLOW: ReadonlySet<string> = new Set([
  ...['token', 'tokens', 'secret', 'key', 'keys', 'apikey', 'api-key', 'password', 'session', 'otp', 'code'],
  ...['reset', 'reset-password', 'verify', 'confirm', 'activate', 'invite', 'invitation', 'invitations'],
  ...['magic', 'magic-link', 'unsubscribe', 'share', 'shared', 'u', 'user', 'users', 'account', 'accounts'],
])
