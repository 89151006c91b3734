import type { SignerFacts } from '../classify/verdict/proof.ts'
import type { Verdict } from '../classify/verdict/verdict.ts'

/** The facts of a request that rules can test. All are known before the first rule is tried. */
export interface Facts {
  readonly method: string
  /** Host or :authority as sent, with its port; `null` if the request has neither. */
  readonly host: string | null
  /** The target in origin-form, as sent; a query may follow. */
  readonly path: string
  /** The client's address as text. */
  readonly address: string
  /** The client's headers as a flat list, one character per byte. */
  readonly rawHeaders: readonly string[]
  readonly print: PrintFacts
  readonly verdict: Verdict
  /** Names of headers that only the proxy may set but that the client sent. */
  readonly forged: readonly string[]
  /** The id of the campaign that the request belongs to; `null` or absent: to none. */
  readonly campaign?: string | null
  /** What the proven signer says about itself; `null` or absent: nothing. */
  readonly signer?: SignerFacts | null
  /** The call of an MCP server in its body; `null` or absent: it has none, or no rule asks for it. */
  readonly mcp?: McpFacts | null
}

/** What a message asks an MCP server for. Texts have one character per byte. */
export interface McpFacts {
  readonly method: string
  /** `null`: no tool is called. */
  readonly tool: string | null
  /** The URI; `null`: no resource is read. */
  readonly resource: string | null
}

/** The part of a Print that rules can test. */
export interface PrintFacts {
  readonly connection: {
    readonly ja4: string | null
    readonly stable: string | null
    readonly http2: string | null
    readonly noHello: 'not-tls' | 'malformed' | null
  }
  readonly ja4h: string | null
}
