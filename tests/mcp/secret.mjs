// Loaded before the official conformance suite, which cannot be told a header: adds the secret of a guard to every request.
import http from "node:http";
import { createRequire } from "node:module";

const bearer = `Bearer ${process.env.SECRET_OF_GUARD}`;
// The suite's `fetch` and its package use the same dispatcher.
const { Agent, setGlobalDispatcher } = createRequire(process.argv[1])("undici");
const adding = (dispatch) => (options, handler) => {
    const headers = options.headers ?? {};
    const flat = Array.isArray(headers) ? headers : [...(headers[Symbol.iterator] ? headers : Object.entries(headers))].flat();
    return dispatch({ ...options, headers: [...flat, "authorization", bearer] }, handler);
};
setGlobalDispatcher(new Agent().compose(adding));
// Headers that `fetch` would change are sent by this.
const { request } = http;
http.request = (options, ...rest) => request({ ...options, headers: { ...options.headers, authorization: bearer } }, ...rest);
