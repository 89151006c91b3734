// Constants of A2A for code that must not load the rest of the protocol.

export const CARD_PATH = '/.well-known/agent-card.json'
/** The path of the JSON-RPC binding. */
export const RPC_PATH = '/a2a'
/** The prefix of all paths of the HTTP+JSON binding. */
export const REST_PATH = '/a2a/v1'
export const VERSION = '1.0'
export const REST_TYPE = 'application/a2a+json'
