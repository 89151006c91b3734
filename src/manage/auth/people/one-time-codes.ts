import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

/** What one-time codes are made of (RFC 6238), as apps take it: base32. */
export function newCodeSecret(): string {
  return base32(randomBytes(SECRET_BYTES))
}

/** For an app that shows the codes, mostly as a QR code. */
export function codeUri(secret: string, email: string): string {
  const query = new URLSearchParams({ secret, issuer: ISSUER })
  return `otpauth://totp/${ISSUER}:${encodeURIComponent(email)}?${query}`
}

/** The number of the half minute that the code is of, be it the one before or the next; `null`: of none of these. */
export function stepOfCode(code: string, secret: string, nowMs: number): number | null {
  if (!CODE.test(code)) return null
  const now = Math.floor(nowMs / STEP_MS)
  // All three, whichever it is.
  const matching = [now, now - 1, now + 1].filter((step) => isSame(code, codeAt(secret, step)))
  return matching[0] ?? null
}

export function codeAt(secret: string, step: number): string {
  const counter = Buffer.alloc(COUNTER_BYTES)
  counter.writeBigUInt64BE(BigInt(step))
  const mac = createHmac('sha1', bytesOf(secret)).update(counter).digest()
  const at = mac.at(-1)! & 0xf
  const number = (mac.readUInt32BE(at) & 0x7fff_ffff) % 10 ** DIGITS
  return String(number).padStart(DIGITS, '0')
}

/** For who has lost the app: each opens once. */
export function newRecoveryCodes(): readonly string[] {
  return Array.from({ length: RECOVERY_CODES }, () =>
    base32(randomBytes(RECOVERY_BYTES)).toLowerCase().match(/.{4}/g)!.join('-'),
  )
}

/** What is kept of one, however it is written; `null`: it is none. It has 80 random bits, so one pass is enough. */
export function hashOfRecoveryCode(code: string): string | null {
  const text = code.toLowerCase().replaceAll(/[\s-]/g, '')
  return RECOVERY.test(text) ? createHash('sha256').update(text).digest('hex') : null
}

function isSame(one: string, other: string): boolean {
  return timingSafeEqual(Buffer.from(one), Buffer.from(other))
}

function base32(bytes: Buffer): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  return bits.replaceAll(/.{5}/g, (five) => ALPHABET[Number.parseInt(five, 2)]!)
}

function bytesOf(text: string): Buffer {
  const bits = [...text].map((char) => ALPHABET.indexOf(char).toString(2).padStart(5, '0')).join('')
  return Buffer.from(bits.match(/.{8}/g)!.map((eight) => Number.parseInt(eight, 2)))
}

const ISSUER = 'Gatehouse'
/** RFC 4648 §6. */
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
/** As long as what it is hashed with; no rest in base32. */
const SECRET_BYTES = 20
const COUNTER_BYTES = 8
const STEP_MS = 30_000
const DIGITS = 6
const CODE = /^\d{6}$/
const RECOVERY_CODES = 10
const RECOVERY_BYTES = 10
const RECOVERY = /^[a-z2-7]{16}$/
