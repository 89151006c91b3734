import { signerAt } from './signer-id.ts'
import type { Software } from './software.ts'

/** How agents can prove who they are, beside their addresses; never changed. */
export class Identities {
  readonly #bySigner = new Map<string, Software[]>()
  readonly #byPlace = new Map<string, Software>()
  readonly #withFingerprints = new Set<string>()

  constructor(list: readonly Software[]) {
    for (const software of list) {
      const { id, kind, verification, signatures } = software
      if (kind !== 'agent') continue
      const { signatureAgent, reverseDns, asns } = verification
      if (signatureAgent !== null) this.#add(signerAt(signatureAgent), software)
      if (reverseDns.length > 0 || asns.length > 0) this.#byPlace.set(id, software)
      if (signatures.some(({ type }) => type === 'ja4')) this.#withFingerprints.add(id)
    }
  }

  /** Those who sign as this one: a vendor may have one key for several agents. */
  signingAs(agentId: string): readonly Software[] {
    return this.#bySigner.get(agentId) ?? NONE
  }

  /** Of all agents that are known by a key: where those are. */
  get signers(): readonly string[] {
    return [...this.#bySigner.keys()]
  }

  /** The agent of this id, where what its address is says something of who it is. */
  byPlace(id: string): Software | null {
    return this.#byPlace.get(id) ?? null
  }

  /** Whether anybody knows how its connections look: else none is foreign to it. */
  hasFingerprints({ id }: Software): boolean {
    return this.#withFingerprints.has(id)
  }

  #add(agentId: string, software: Software): void {
    const others = this.#bySigner.get(agentId)
    if (others === undefined) this.#bySigner.set(agentId, [software])
    else others.push(software)
  }
}

const NONE: readonly Software[] = []
