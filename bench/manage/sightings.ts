import type { Sighting, SightingId } from '../../src/plane/sighting.ts'
import { DecisionIds } from '../../src/proxy/connection/decision-id.ts'

/**
 * Sightings as two proxies make them on a site with much traffic: 1,200 kinds of clients, of which 400 are of 40 agents,
 * with 200 TLS stacks; 5,000 addresses. The cookies of a third of all requests, and so the end of their JA4H, are those
 * of one person. One request in 10,000 is for a host that hardly has any.
 */
export class SightingSource {
  readonly #ids: readonly DecisionIds[]
  readonly #blocks: number
  readonly #apps: readonly string[]
  readonly #perBeat: number
  #nowMs: number
  #count = 0
  #beats = 0

  /** `blocks`: which of how many requests are blocked; 0: none. `apps`: their number. `perBeat`: requests of a tenth of a second. */
  constructor(nowMs: number, blocks = 10, apps = 1, perBeat = 1_000) {
    this.#nowMs = nowMs
    this.#perBeat = perBeat
    this.#blocks = blocks
    this.#apps = apps === 1 ? ['default'] : Array.from({ length: apps }, (_, app) => `app-${app}`)
    this.#ids = [new DecisionIds(nowMs), new DecisionIds(nowMs)]
  }

  /** When the newest request was seen. */
  get nowMs(): number {
    return this.#nowMs
  }

  /** As one proxy sends them. */
  batch(size: number): readonly Sighting[] {
    return Array.from({ length: size }, () => this.#sighting())
  }

  #sighting(): Sighting {
    const count = this.#count++
    if (count >= this.#beats * this.#perBeat) {
      this.#beats++
      this.#nowMs += 100
      for (const ids of this.#ids) ids.beat(this.#nowMs)
    }
    const ids = this.#ids[Math.floor(count / 512) % 2]!
    const random = Math.imul(count + 1, 0x9e3779b1) >>> 0
    const client = (random >>> 8) % 1_200
    const isAgent = client % 3 === 0
    const agent = isAgent ? `agent-${client % 40}` : null
    const stack = (client % 200).toString(16).padStart(4, '0')
    const headers = (client % 500).toString(16).padStart(12, '0')
    const cookies = isAgent || count % 2 === 0 ? '000000000000' : random.toString(16).padStart(12, '0')
    return {
      id: ids.next() as string as SightingId,
      seenAtMs: this.#nowMs,
      proxy: 'gate-one',
      address: `198.51.${(random >>> 5) % 20}.${(random >>> 12) % 250}`,
      method: 'GET',
      host: count % 10_000 === 5_000 ? 'quiet.example.test' : 'www.example.test',
      app: this.#apps[(random >>> 9) % this.#apps.length]!,
      path: `/articles/${random % 10_000}/comments`,
      userAgent: USER_AGENT,
      ja4: `t13d1516h2_8daaf615${stack}_b186095e22b6`,
      ja4Source: 'own',
      noHello: null,
      stable: `gs1-t13d1516h2-8daaf615${stack}-b186095e22b6`,
      ja4s: 't130200_1301_a56c5b993250',
      ja4h: `ge20nn14enus_${headers}_000000000000_${cookies}`,
      ja4x: null,
      http2: '1:65536;2:0;4:6291456;6:262144|15663105|0|m,a,s,p',
      verdict: isAgent ? 'agent' : 'human',
      agent,
      category: isAgent ? 'crawler' : null,
      purposes: isAgent ? ['search'] : [],
      software: agent ?? 'chrome',
      confidence: (client % 100) / 100,
      nameConfidence: 0.5,
      verified: isAgent && client % 2 === 0 ? 'ip-range' : null,
      signer: null,
      signatureFault: null,
      allegedSigner: null,
      requestKind: 0,
      program: 0,
      headerOrder: 0,
      target: 0,
      campaign: null,
      visitor: null,
      sampled: null,
      mcpMethod: null,
      mcpTool: null,
      key: null,
      evidence: ['ua-names-agent', 'stack-agrees', 'headers-of-agents'],
      rule: 'otherwise',
      layer: 'last',
      action: 'tag',
      dryRun: false,
      done: this.#blocks > 0 && random % this.#blocks === 0 ? 'block' : 'tag',
      limited: false,
      forged: [],
      snapshot: 3,
    }
  }
}

const USER_AGENT =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36'
