import { ipFamily } from '../../wire/ip-address.ts'

/** Stands for a part of a path or User-Agent that may be a secret or name a person. */
export const REDACTED = '[redacted]'

/**
 * A path as callers without the scope `admin` see it. Segments that look like secrets or personal data are
 * redacted: keys, tokens, JWTs, UUIDs, long numbers, e-mail and IP addresses. Behind a name like `reset` or
 * `otp`, every segment is redacted that is not an ordinary word there, because codes can be short. Values in parameters (`;jsessionid=…`, `/token=…`) are always redacted. If in doubt, a
 * segment is redacted.
 */
export function shownPath(path: string): string {
  return mapSegments(path, shownSegment)
}

/** Changes each segment of a path, without its query, by what stands before it. */
export function mapSegments(
  path: string,
  change: (segment: string, before: SegmentBefore) => string,
): string {
  const end = path.search(/[?#]/)
  const segments = (end === -1 ? path : path.slice(0, end)).split('/')
  let before: SegmentBefore = 'other'
  return segments
    .map((segment) => {
      const shown = change(segment, before)
      before = behind(segment, before)
      return shown
    })
    .join('/')
}

/** What stands before a segment: the name of a secret, the name of a kind of person, or neither. */
export type SegmentBefore = 'secret' | 'person' | 'other'

function behind(segment: string, before: SegmentBefore): SegmentBefore {
  const name = plainName(decodedText(segment) ?? segment)
  if (before === 'secret' || SECRETS_FOLLOW.has(name)) return 'secret'
  return PERSONS_FOLLOW.has(name) ? 'person' : 'other'
}

/** In lower case and without separators, because apps write `reset-password` in many ways. */
export function plainName(text: string): string {
  return text.toLowerCase().replace(/[-_. ]/g, '')
}

/** A User-Agent as these callers see it. Contact addresses stay: they name the operator of a crawler. */
export function shownUserAgent(userAgent: string): string {
  return userAgent.replace(RUNS, (run) => (isRandom(run) ? REDACTED : run))
}

export function shownSegment(segment: string, before: SegmentBefore): string {
  if (segment === '') return segment
  const [name = '', ...parameters] = segment.split(';')
  const shown = shownParameter(name, before)
  return [shown, ...parameters.map((parameter) => shownParameter(parameter, 'other'))].join(';')
}

/** `name`, or `name=value`. */
function shownParameter(text: string, before: SegmentBefore): string {
  const decoded = decodedText(text)
  if (decoded === null) return REDACTED
  const equals = decoded.indexOf('=')
  if (equals !== -1) {
    const name = decoded.slice(0, equals)
    return NAME.test(name) && !isPrivate(name) ? `${name}=${REDACTED}` : REDACTED
  }
  if (before === 'secret' && !isOrdinary(decoded)) return REDACTED
  // An encoded slash.
  if (decoded.includes('/') && shownPath(decoded) !== decoded) return REDACTED
  const isPerson = before === 'person' && HAS_DIGIT.test(decoded) && decoded.length >= 6
  return isPerson || isPrivate(decoded) ? REDACTED : text
}

/**
 * Decodes percent-encoding twice, because some apps encode twice. `null`: malformed, or encoded more often.
 */
export function decodedText(text: string): string | null {
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

/** Whether each part of a segment is an ordinary word behind the name of a secret, or a version (`v1`). */
export function isOrdinary(text: string): boolean {
  const parts = text.toLowerCase().split(/[-_. ]/)
  return parts.every((part) => ORDINARY.has(part) || SECRETS_FOLLOW.has(part) || VERSION.test(part))
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
export function isRandom(run: string): boolean {
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
export const RUNS = /[A-Za-z0-9_-]{12,}/g
export const UUID = /[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}/i
/** With a digit and a letter. */
const HEX = /(?:^|[_-])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{16,}(?:$|[_-])/i
/** No natural language has a word this long in a path. */
const LONG_WORD = /[a-z]{36,}|[A-Z]{24,}/
/** The prefixes of GitHub, GitLab, Slack, Stripe, OpenAI, AWS, Google and Gatehouse. */
export const KEY_PREFIX =
  /^(?:gh[a-z]_|github_pat_|glpat-|xox[a-z]-|[prs]k[_-](?:live|test|proj|ant)|sk-|AKIA|ASIA|AIza|eyJ)/
const EMAIL = /[^\s@]@[^\s@]/
const LONG_NUMBER = /\d{9,}/
const PHONE = /^\+?\d[\d ().-]{7,}\d$/
const IPV4 = /(?:^|[^\d.])(?:\d{1,3}\.){3}\d{1,3}(?:$|[^\d.])/
const NAME = /^[A-Za-z][\w.-]{0,31}$/
const HAS_DIGIT = /\d/
const VERSION = /^(?:v\d{1,2})?$/
/** As `plainName` writes them. */
export const SECRETS_FOLLOW: ReadonlySet<string> = new Set([
  ...['token', 'tokens', 'secret', 'secrets', 'key', 'keys', 'apikey', 'apikeys', 'password', 'passcode'],
  ...['session', 'sessions', 'otp', 'totp', 'onetimecode', 'onetimepassword', 'code', 'codes', 'pin', 'mfa'],
  ...['2fa', 'reset', 'resetpassword', 'passwordreset', 'forgotpassword', 'recover', 'recovery', 'verify'],
  ...['verifyemail', 'emailverification', 'verification', 'confirm', 'confirmemail', 'confirmation'],
  ...['activate', 'activation', 'invite', 'invites', 'invitation', 'invitations', 'magic', 'magiclink'],
  ...[
    'magiclogin',
    'loginlink',
    'unsubscribe',
    'share',
    'shared',
    'voucher',
    'vouchers',
    'coupon',
    'coupons',
  ],
])
/** Words that apps put behind these names. A code is hardly ever one of them. */
const ORDINARY: ReadonlySet<string> = new Set([
  ...[
    'new',
    'add',
    'edit',
    'list',
    'all',
    'create',
    'delete',
    'remove',
    'update',
    'request',
    'send',
    'resend',
  ],
  ...['check', 'validate', 'refresh', 'revoke', 'rotate', 'renew', 'cancel', 'accept', 'decline', 'complete'],
  ...['done', 'success', 'sent', 'failed', 'error', 'expired', 'invalid', 'status', 'info', 'help', 'about'],
  ...['email', 'mail', 'phone', 'sms', 'app', 'account', 'user', 'users', 'login', 'logout', 'signin'],
  ...['signup', 'register', 'settings', 'public', 'private', 'index', 'html', 'json', 'php', 'api', 'oauth'],
])
/** The segment behind one of these names a person if it has a digit and six or more characters. */
const PERSONS_FOLLOW: ReadonlySet<string> = new Set(['u', 'user', 'users', 'account', 'accounts'])
