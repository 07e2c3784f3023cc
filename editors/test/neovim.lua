-- What a user does in Neovim, without a screen: types an error, asks about a name, goes to its definition. Writes the
-- answers as JSON to the file that the variable RESULT names.
local function wait(what, condition)
  if not vim.wait(60000, condition, 20) then
    io.stderr:write("no " .. what .. "\n")
    vim.cmd("cquit")
  end
end

local function find(text)
  local lines = vim.api.nvim_buf_get_lines(0, 0, -1, false)
  for line, content in ipairs(lines) do
    local at = content:find(text, 1, true)
    if at then return { line = line - 1, character = at - 1 } end
  end
  error(text)
end

local function ask(method, text)
  local params = { textDocument = vim.lsp.util.make_text_document_params(0), position = find(text) }
  local answers = vim.lsp.buf_request_sync(0, method, params, 60000)
  for _, answer in pairs(answers or {}) do return answer.result or vim.NIL end
  return vim.NIL
end

local function diagnose()
  local found = {}
  for _, one in ipairs(vim.diagnostic.get(0)) do
    if one.severity == vim.diagnostic.severity.ERROR then
      table.insert(found, (one.lnum + 1) .. ":" .. (one.col + 1) .. ": " .. one.message)
    end
  end
  table.sort(found)
  return found
end

wait("server", function()
  for _, client in pairs(vim.lsp.get_active_clients()) do
    if client.initialized then return true end
  end
  return false
end)
local result = {}
result.hover = ask("textDocument/hover", "notes.one`")
result.definition = ask("textDocument/definition", "notes.one`")
result.table = ask("textDocument/definition", "notes order by")
vim.api.nvim_buf_set_lines(0, -1, -1, false, { "const n: number = HttpError;", "await notes.all`select nowhere from notes`;" })
-- Those about statements come after the others.
wait("messages", function()
  return vim.fn.json_encode(diagnose()):find("no such column", 1, true) ~= nil
end)
result.messages = diagnose()
local file = io.open(os.getenv("RESULT"), "w")
file:write(vim.fn.json_encode(result))
file:close()
vim.cmd("qall!")
