/** The command on the sign-in page. */
export const FIRST_KEY = 'gatehouse keys create --name admin --access admin'
