import { type HelloTraits, hasTraits, TRAIT } from '../../../fingerprint/hello-traits.ts'
import type { Engine } from '../software.ts'

/**
 * What engines began to send with a version, so that a client that claims an older version cannot be what it
 * claims to be. `earliest` leaves room for trials, flags, and browsers that state an older version: people who
 * use them must not be contradicted.
 */
export interface Milestone {
  /** The first version that sends it by default. */
  readonly since: number
  /** No browser that states a lower version can send it. */
  readonly earliest: number
}

interface History {
  /** `zstd` in accept-encoding. */
  readonly zstd: Milestone
  /** The key share X25519MLKEM768. */
  readonly mlKem: Milestone
  /** Application-Layer Protocol Settings under the number 17613. */
  readonly newAlps: Milestone
  /** The extension trust_anchors (0xca34), unless the server's DNS asks for it. */
  readonly trustAnchors: Milestone
}

const NEVER: Milestone = { since: Number.POSITIVE_INFINITY, earliest: 0 }

const HISTORY: Readonly<Record<Exclude<Engine, 'other'>, History>> = {
  blink: {
    // web-features "zstd", 2026-11: Chrome 123 of 2024-03-19. A flag of Chrome 117 turned it on before.
    zstd: { since: 123, earliest: 117 },
    // Google's security blog, 2024-09-13: Chrome 131. The flag that turns it on came with 128.
    mlKem: { since: 131, earliest: 128 },
    // The JA4 of lexiforest/curl-impersonate, 2026-08-08: 132. Chromium has the feature, turned off, since 126.
    newAlps: { since: 132, earliest: 126 },
    // Chromium's net/base/features.cc, 2026-09: off in 151, on in 152; captures of both agree.
    trustAnchors: { since: 152, earliest: 152 },
  },
  gecko: {
    // web-features "zstd", 2026-11: Firefox 126 of 2024-05-14. Until 130, resistFingerprinting stated 115.
    zstd: { since: 126, earliest: 115 },
    // Mozilla's release notes of Firefox 132, 2024-10-29. It was a setting in the versions before.
    mlKem: { since: 132, earliest: 128 },
    newAlps: NEVER,
    trustAnchors: NEVER,
  },
  webkit: {
    // web-features "zstd", 2026-11: Safari 26.3 of 2026-02-11. Safari 18.4 has none; some 26.0 have it.
    zstd: { since: 27, earliest: 26 },
    // Apple's "Prepare your network for quantum-secure encryption", 2025-09: the systems of Safari 26.
    mlKem: { since: 26, earliest: 26 },
    newAlps: NEVER,
    trustAnchors: NEVER,
  },
}

/** Chrome's policy ZstdContentEncodingEnabled turned it off until 137 (Microsoft's documentation of it). */
const ZSTD_ALWAYS_SINCE: Readonly<Record<Exclude<Engine, 'other'>, number>> = {
  blink: 138,
  gecko: HISTORY.gecko.zstd.since,
  webkit: HISTORY.webkit.zstd.since,
}

/** Whether the hello has what that version of the engine cannot have had yet. */
export function isHelloNewer(engine: Engine, version: number, traits: HelloTraits): boolean {
  if (engine === 'other') return false
  const { mlKem, newAlps, trustAnchors } = HISTORY[engine]
  return (
    (version < mlKem.earliest && hasTraits(traits, TRAIT.mlKem)) ||
    (version < newAlps.earliest && hasTraits(traits, TRAIT.newAlps)) ||
    (version < trustAnchors.earliest && hasTraits(traits, TRAIT.trustAnchors))
  )
}

/** Whether that version of the engine may know the newest encoding. */
export function mayKnowZstd(engine: Engine, version: number): boolean {
  return engine === 'other' || version >= HISTORY[engine].zstd.earliest
}

/** Whether the encodings include one that that version of the engine cannot have known yet. */
export function isEncodingNewer(engine: Engine, version: number, acceptEncoding: string): boolean {
  return !mayKnowZstd(engine, version) && acceptEncoding.includes('zstd')
}

/** Whether the encodings lack one that that version always sends. Media are requested with `identity`. */
export function isEncodingOlder(engine: Engine, version: number, acceptEncoding: string): boolean {
  if (engine === 'other' || version < ZSTD_ALWAYS_SINCE[engine]) return false
  return !acceptEncoding.includes('zstd') && !acceptEncoding.startsWith('identity')
}
