import { LateCache } from '../../shared/late-cache.ts'
import type { PlaceFinding } from '../../classify/verdict/proof.ts'
import type { InquiryResult } from '../keys/inquiry.ts'

/** What a worker knows about addresses. Bounded. */
export class PlaceBook {
  readonly #known = new LateCache<Known>({ max: PLACES_MAX })

  take({ address, place, untilMs }: InquiryResult & { readonly kind: 'place' }): void {
    this.#known.set(address, { place, untilMs })
  }

  /** `null`: unknown or expired. */
  of(address: string, nowMs: number): PlaceFinding | null {
    const known = this.#known.get(address)
    return known === undefined || known.untilMs <= nowMs ? null : known.place
  }
}

interface Known {
  readonly place: PlaceFinding
  readonly untilMs: number
}

/** About 5 MB. */
const PLACES_MAX = 20_000
