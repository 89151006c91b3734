import { signerAt } from './signer-id.ts'
import type { SignatureIndex } from './index/signature-index.ts'
import type { Software } from './software.ts'

/** How agents can prove their identity, other than by published addresses. Never changed. */
export class Identities {
  readonly #bySigner = new Map<string, Software[]>()
  readonly #byPlace = new Map<string, Software>()
  readonly #lookingAlike = new Map<string, ReadonlySet<string>>()

  /** `fingerprints` is the index of all fingerprints in the list. */
  constructor(list: readonly Software[], fingerprints: SignatureIndex) {
    for (const software of list) {
      const { id, kind, verification } = software
      if (kind !== 'agent') continue
      const { signatureAgent, reverseDns, asns } = verification
      if (signatureAgent !== null) {
        this.#add(signerAt(signatureAgent), software)
        this.#lookingAlike.set(id, lookingAlike(software, list, fingerprints))
      }
      if (reverseDns.length > 0 || asns.length > 0) this.#byPlace.set(id, software)
    }
  }

  /** The agents of this signer. A vendor may have one key for several agents. */
  signingAs(agentId: string): readonly Software[] {
    return this.#bySigner.get(agentId) ?? NONE
  }

  /** Where the key directories of all signing agents are. */
  get signers(): readonly string[] {
    return [...this.#bySigner.keys()]
  }

  /** The agent of this id, if host names or networks can identify it. */
  byPlace(id: string): Software | null {
    return this.#byPlace.get(id) ?? null
  }

  /**
   * The software whose TLS a signing agent may show: itself, and the software that it is built with, which
   * has other hellos in other versions. Empty if the agent's TLS is unknown; then no TLS is foreign to it.
   */
  lookingLike({ id }: Software): ReadonlySet<string> {
    return this.#lookingAlike.get(id) ?? NO_IDS
  }

  #add(agentId: string, software: Software): void {
    const others = this.#bySigner.get(agentId)
    if (others === undefined) this.#bySigner.set(agentId, [software])
    else others.push(software)
  }
}

/** All software that shares a TLS hello with it. */
function lookingAlike(
  { signatures }: Software,
  list: readonly Software[],
  fingerprints: SignatureIndex,
): ReadonlySet<string> {
  const alike = new Set<string>()
  const hellos = signatures.flatMap((each) => (each.type === 'ja4' ? [each.value] : []))
  for (const hello of hellos.slice(0, HELLOS_MAX))
    for (const { software } of fingerprints.find('ja4', hello, 'exact')) alike.add(list[software]!.id)
  return alike
}

const NONE: readonly Software[] = []
const NO_IDS: ReadonlySet<string> = new Set()
/** Of one agent. More hellos add nothing new about the software it is built with. */
const HELLOS_MAX = 256
