import type { SignatureUse } from '../keys/inquiry.ts'

/**
 * What a key was used for, in blocks in the order in which it came, each of which is forgotten whole: to delete one
 * after the other from the front of a Map takes longer and longer.
 */
export class KeyUses {
  size = 0
  /** Of what was signed up to then nobody can tell. */
  floorS: number
  /** The oldest first. */
  readonly #blocks: Block[] = []

  constructor(floorS: number) {
    this.floorS = floorS
  }

  /** `undefined`: it was not used. */
  holderOf(id: string): string | null | undefined {
    for (let i = this.#blocks.length - 1; i >= 0; i--) {
      const holder = this.#blocks[i]!.holders.get(id)
      if (holder !== undefined) return holder
    }
    return undefined
  }

  /** It was not used before. */
  add({ id, holder, createdS, goodUntilMs }: SignatureUse, blockMax: number): void {
    let block = this.#blocks.at(-1)
    if (block === undefined || block.holders.size >= block.max) {
      // Small ones, of which little is lost, as long as there are few.
      const max = Math.min(blockMax, Math.max(BLOCK_MIN, Math.ceil(this.size / BLOCKS)))
      block = { holders: new Map(), max, createdS, untilMs: goodUntilMs }
      this.#blocks.push(block)
    }
    block.holders.set(id, holder)
    block.createdS = Math.max(block.createdS, createdS)
    block.untilMs = Math.max(block.untilMs, goodUntilMs)
    this.size++
  }

  /** Says how many there were whose time is over. */
  dropOver(nowMs: number): number {
    let dropped = 0
    for (let block = this.#blocks[0]; block !== undefined && block.untilMs <= nowMs; block = this.#blocks[0])
      dropped += this.#drop()
    return dropped
  }

  /** Before their time, if that is not over. */
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
  /** The latest of them. */
  createdS: number
  untilMs: number
}

const BLOCK_MIN = 64
const BLOCKS = 8
