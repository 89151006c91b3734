// What is said of A2A where the rest of it need not be loaded.

export const CARD_PATH = '/.well-known/agent-card.json'
/** Of the JSON-RPC binding. */
export const RPC_PATH = '/a2a'
/** Of the HTTP+JSON binding: its paths follow. */
export const REST_PATH = '/a2a/v1'
export const VERSION = '1.0'
export const REST_TYPE = 'application/a2a+json'
