import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

/** The secret of one-time codes (RFC 6238), in base32 as apps expect it. */
export function newCodeSecret(): string {
  return base32(randomBytes(SECRET_BYTES))
}

/** For an app that shows the codes, mostly as a QR code. */
export function codeUri(secret: string, email: string): string {
  const query = new URLSearchParams({ secret, issuer: ISSUER })
  return `otpauth://totp/${ISSUER}:${encodeURIComponent(email)}?${query}`
}

/**
 * The time step of the code: now, the previous one, or the next one. `null`: the code matches none of them.
 */
export function stepOfCode(code: string, secret: string, nowMs: number): number | null {
  if (!CODE.test(code)) return null
  const now = Math.floor(nowMs / STEP_MS)
  // Computes all three, so that the time does not depend on the match.
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

/** For people who have lost the app. Each code works once. */
export function newRecoveryCodes(): readonly string[] {
  return Array.from({ length: RECOVERY_CODES }, () =>
    base32(randomBytes(RECOVERY_BYTES)).toLowerCase().match(/.{4}/g)!.join('-'),
  )
}

/**
 * The stored hash of a recovery code, in any spelling. `null`: invalid. It has 80 random bits, so one pass is
 * enough.
 */
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
/** The size of a SHA-1 hash; base32 needs no padding for it. */
const SECRET_BYTES = 20
const COUNTER_BYTES = 8
const STEP_MS = 30_000
const DIGITS = 6
const CODE = /^\d{6}$/
const RECOVERY_CODES = 10
const RECOVERY_BYTES = 10
const RECOVERY = /^[a-z2-7]{16}$/
