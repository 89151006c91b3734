import type { SignatureUse } from '../keys/inquiry.ts'

/**
 * The uses of one key, in blocks by order of arrival. A block is dropped as a whole: deleting single entries
 * from the front of a Map gets slower and slower.
 */
export class KeyUses {
  size = 0
  /** For signatures created up to then, it is unknown whether they were used. */
  floorS: number
  /** Oldest first. */
  readonly #blocks: Block[] = []

  constructor(floorS: number) {
    this.floorS = floorS
  }

  /** `undefined`: not used. */
  holderOf(id: string): string | null | undefined {
    for (let i = this.#blocks.length - 1; i >= 0; i--) {
      const holder = this.#blocks[i]!.holders.get(id)
      if (holder !== undefined) return holder
    }
    return undefined
  }

  /** The caller has checked that the signature was not used before. */
  add({ id, holder, createdS, goodUntilMs }: SignatureUse, blockMax: number): void {
    let block = this.#blocks.at(-1)
    if (block === undefined || block.holders.size >= block.max) {
      // Start with small blocks: dropping one then loses little.
      const max = Math.min(blockMax, Math.max(BLOCK_MIN, Math.ceil(this.size / BLOCKS)))
      block = { holders: new Map(), max, createdS, untilMs: goodUntilMs }
      this.#blocks.push(block)
    }
    block.holders.set(id, holder)
    block.createdS = Math.max(block.createdS, createdS)
    block.untilMs = Math.max(block.untilMs, goodUntilMs)
    this.size++
  }

  /** Drops expired blocks and returns the number of uses in them. */
  dropOver(nowMs: number): number {
    let dropped = 0
    for (let block = this.#blocks[0]; block !== undefined && block.untilMs <= nowMs; block = this.#blocks[0])
      dropped += this.#drop()
    return dropped
  }

  /** Drops the oldest block, even before it expires. */
  forgetOldest(nowMs: number): void {
    const block = this.#blocks[0]
    if (block === undefined) return
    this.#drop()
    if (block.untilMs > nowMs) this.floorS = Math.max(this.floorS, block.createdS)
  }

  #drop(): number {
    const { size } = this.#blocks.shift()!.holders
    this.size -= size
    return size
  }
}

interface Block {
  readonly holders: Map<string, string | null>
  readonly max: number
  /** The latest creation time in the block. */
  createdS: number
  untilMs: number
}

const BLOCK_MIN = 64
const BLOCKS = 8
