import {
  type SegmentBefore,
  decodedText,
  isOrdinary,
  isRandom,
  KEY_PREFIX,
  mapSegments,
  plainName,
  REDACTED,
  RUNS,
  SECRETS_FOLLOW,
  shownSegment,
  UUID,
} from './shown-path.ts'

/** Stands for an id in the pattern of a path. */
const ID = '[id]'

/**
 * A path as it is stored with `privacy.paths: full`: without its query, and without secrets. Secrets are keys and
 * tokens, values of parameters that are named like one, and what follows a segment like `reset` or `invite`.
 */
export function pathWithoutSecrets(path: string): string {
  return PLAIN_PATH.test(path) ? path : mapSegments(path, withoutSecrets)
}

/**
 * A path as it is stored with `privacy.paths: pattern`: also without what may name a person or an object. Numbers of
 * three or more digits, UUIDs and the segment behind `users` become `[id]`; keys, tokens, e-mail and IP addresses
 * become `[redacted]`.
 */
export function pathPattern(path: string): string {
  return mapSegments(path, patternOf)
}

/** Whether a stored path is what the client sent. */
export function isWholePath(stored: string): boolean {
  return stored !== '' && !stored.includes(REDACTED) && !stored.includes(ID)
}

function withoutSecrets(segment: string, before: SegmentBefore): string {
  if (before === 'secret' && segment !== '' && !isOrdinary(decodedText(segment) ?? segment)) return REDACTED
  return segment
    .split(';')
    .map((part) => {
      const decoded = decodedText(part) ?? part
      const equals = decoded.indexOf('=')
      const name = decoded.slice(0, Math.max(equals, 0))
      if (equals !== -1 && (isNameOfSecret(name) || isSecret(decoded.slice(equals + 1))))
        return isSecret(name) ? REDACTED : `${name}=${REDACTED}`
      if (decoded.includes('/') && pathWithoutSecrets(decoded) !== decoded) return REDACTED
      return isSecret(decoded) ? REDACTED : part
    })
    .join(';')
}

function patternOf(segment: string, before: SegmentBefore): string {
  if (segment === '') return segment
  const decoded = decodedText(segment)
  if (decoded === null || (before === 'secret' && !isOrdinary(decoded))) return REDACTED
  if (UUID.test(decoded) || /^\d+$/.test(decoded)) return ID
  if (before === 'person' && !isOrdinary(decoded)) return ID
  const shown = shownSegment(segment, before)
  if (shown.includes(REDACTED)) return shown
  // What an encoded character hides is unknown to the digits.
  return decoded === segment ? shown.replace(LONG_DIGITS, ID) : shown.replace(PLAIN_DIGITS, ID)
}

function isNameOfSecret(name: string): boolean {
  const plain = plainName(name)
  return SECRETS_FOLLOW.has(plain) || SECRET_NAMES.test(plain)
}

/** UUIDs and long hexadecimal numbers are usually ids of objects and files, so they are no secrets by themselves. */
function isSecret(text: string): boolean {
  if (USER_AND_PASSWORD.test(text)) return true
  return (text.match(RUNS) ?? []).some((run) => {
    if (KEY_PREFIX.test(run)) return true
    return run.length >= SECRET_LENGTH_MIN && !UUID.test(run) && !HEX_ONLY.test(run) && isRandom(run)
  })
}

/**
 * Short words without separators, none of which is followed by another one and begins like one of SECRETS_FOLLOW. One
 * test finds most paths that hold no secret.
 */
const PLAIN_PATH =
  /^(?:\/(?!(?:to|ap|ke|se|pa|ot|on|co|pi|mf|2f|re|fo|ve|em|ac|in|ma|lo|un|sh|vo)[a-z0-9]*\/)[a-z0-9]{0,19})*\/[a-z0-9.]{0,19}$/
const SECRET_NAMES =
  /token|secret|password|passwd|session|sessid|^sid$|^auth|apikey|signature|^sig$|^jwt$|^ticket$|credential/
const USER_AND_PASSWORD = /:[^/@\s]{1,200}@/
const HEX_ONLY = /^[0-9a-f]+$/i
const SECRET_LENGTH_MIN = 20
const LONG_DIGITS = /\d{3,}/g
/** Not those behind a percent sign. */
const PLAIN_DIGITS = /(?<![%0-9A-Fa-f])\d{3,}/g
