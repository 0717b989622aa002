-- Busbar's job_submit plug-in, version @VERSION@, mode @MODE@. Written by 'busbar slurm setup'; do not edit.
-- A site with a plug-in of its own puts this text into it and calls busbar_submit and busbar_modify.

local MODE = "@MODE@"
-- What happens in mode steer while no daemon is there: jobs wait, or Slurm starts them as in mode admit.
local FAIL = "@FAIL@"
local OFF = "@OFF@"
local MARK = "@MARK@"
local WAIT = "@WAIT@"
local ALL = @ALL@
local PARTITIONS = { @PARTITIONS@ }
local LICENCE = "@LICENCE@"
local LAYERED = "@LAYERED@"
local NODE_WATTS = @NODE_WATTS@
local NODE_CPUS = @NODE_CPUS@
local NODE_GPUS = @NODE_GPUS@
-- The watts of a GPU by its type; under "" those of types that are not named.
local GPU_WATTS = { @GPU_WATTS@ }
local PARTITION_WATTS = { @PARTITION_WATTS@ }
local APP_WATTS = { @APP_WATTS@ }
-- Whether jobs share nodes, in mode steer; otherwise each has whole ones.
local SHARED = @SHARED@
local OPERATORS = { [0] = true, @OPERATORS@ }

-- What the plug-in does now: what it is for; nothing ("watch") if the site has given the cluster back to Slurm; or "stand-in" if no
-- daemon is there and Slurm starts jobs by itself. The file is there in any case, and says so: slurmctld may take the error of a
-- missing file for its own.
local function mode_now()
  local file = io.open(OFF, "r")
  if not file then
    return MODE
  end
  local said = file:read("*l")
  file:close()
  if said == "on" then
    return MODE
  end
  return said == "admit" and MODE == "steer" and FAIL == "admit" and "stand-in" or "watch"
end

-- A number, or nil if the user did not say it.
local function given(number)
  if number == nil or number >= 4294967294 or number == 65534 or number == 65535 then
    return nil
  end
  return number
end

-- The partitions of a job: those it names, or the default one.
local function partitions_of(job_desc, part_list)
  local names = {}
  if job_desc.partition and job_desc.partition ~= "" then
    for name in string.gmatch(job_desc.partition, "[^,]+") do
      names[#names + 1] = name
    end
    return names
  end
  for name, part in pairs(part_list) do
    if part.flag_default == 1 then
      names[1] = part.name or name
    end
  end
  return names
end

-- How many of the partitions are Busbar's.
local function count_ours(names)
  local count = 0
  for _, name in ipairs(names) do
    if ALL or PARTITIONS[name] then
      count = count + 1
    end
  end
  return count
end

-- The words to Busbar in a comment, by key; or nil and what is wrong. A comment without them has none.
local function read_words(comment)
  local words = {}
  for part in string.gmatch((comment or "") .. ";", "([^;]*);") do
    local first, rest = string.match(part, "^%s*(%S+)(.*)$")
    if first == "busbar" then
      for word in string.gmatch(rest, "%S+") do
        local key, value = string.match(word, "^(%l+)=(.*)$")
        local wrong = nil
        if word == "malleable" then
          key, value = "malleable", true
        elseif key == "app" then
          if #value > 64 or not string.match(value, "^[%w%._%-%+]+$") then
            wrong = "does not name an application; use letters, digits and . _ - +, such as app=lulesh"
          end
        elseif key == "slowdown" then
          local share = string.match(value, "^(%d+)%%$") or string.match(value, "^(%d+%.%d+)%%$")
          if not share or tonumber(share) > 1000 then
            wrong = "is not a slowdown; use a percentage from 0% to 1000%, such as slowdown=10%"
          end
        elseif key == "nodes" then
          local low, high = string.match(value, "^(%d+)%-(%d+)$")
          if not low then
            low = string.match(value, "^%d+$")
            high = low
          end
          if not low or tonumber(low) < 1 or tonumber(high) < tonumber(low) or tonumber(high) > 999999 then
            wrong = "is not a number of nodes; use one number or two, such as nodes=4-16"
          else
            words.fewest, words.most = tonumber(low), tonumber(high)
          end
        else
          wrong = "is unknown; valid: app=NAME, slowdown=PERCENT%, nodes=MIN-MAX and malleable"
        end
        if not wrong and words[key] ~= nil then
          wrong = "is given twice; keep one"
        end
        if wrong then
          return nil, "busbar: '" .. word .. "' in the comment " .. wrong
        end
        words[key] = value
      end
      return words
    end
  end
  return words
end

-- A comment without the part that asks Busbar to wait.
local function without_wait(comment)
  local parts = {}
  for part in string.gmatch((comment or "") .. ";", "([^;]*);") do
    if string.match(part, "^%s*(.-)%s*$") ~= WAIT then
      parts[#parts + 1] = part
    end
  end
  return (string.gsub(table.concat(parts, ";"), "^%s*;*%s*", ""))
end

local function with_wait(comment)
  local rest = without_wait(comment)
  if rest == "" then
    return WAIT
  end
  return rest .. "; " .. WAIT
end

-- The most watts of any GPU; 0 if GPUs are not counted.
local MOST_OF_GPU = 0
for _, watts in pairs(GPU_WATTS) do
  MOST_OF_GPU = math.max(MOST_OF_GPU, watts)
end

-- How many GPUs one of Slurm's lists asks for, such as "gres:gpu:a100:2,gres/gpu=1", and their watts; nil if that cannot be
-- read. A GPU whose type is not said may be any.
local function read_gpus(list)
  local count, watts = 0, 0
  for part in string.gmatch(list or "", "[^,]+") do
    local words = {}
    for word in string.gmatch(part, "[^:=/%s]+") do
      words[#words + 1] = word
    end
    if words[1] == "gres" then
      table.remove(words, 1)
    end
    if words[1] == "mps" or words[1] == "shard" then
      return nil
    end
    if words[1] == "gpu" then
      local kind, number = words[2], words[3]
      if not number and (not kind or string.match(kind, "^%d+$")) then
        kind, number = nil, kind
      end
      number = number or "1"
      if words[4] or not string.match(number, "^%d+$") then
        return nil
      end
      local each = kind and (GPU_WATTS[kind] or GPU_WATTS[""]) or MOST_OF_GPU
      count = count + tonumber(number)
      watts = watts + tonumber(number) * each
    end
  end
  return count, watts
end

-- How many nodes a job may get at most, as far as it says.
local function most_nodes(job_desc)
  local nodes = given(job_desc.max_nodes) or given(job_desc.min_nodes)
  if nodes and nodes > 0 then
    return nodes
  end
  local tasks = math.max(1, given(job_desc.num_tasks) or 1)
  nodes = tasks
  if NODE_CPUS > 0 then
    local cpus = given(job_desc.cpus_per_task) or 1
    nodes = math.max(1, math.ceil(tasks * cpus / NODE_CPUS))
  end
  if NODE_GPUS > 0 then
    nodes = math.max(nodes, math.ceil((read_gpus(job_desc.tres_per_job) or 0) / NODE_GPUS))
  end
  return nodes
end

-- The watts of the GPUs of a job, and the most that may be on one of its nodes. What cannot be read counts as all GPUs.
local function gpu_watts(job, nodes)
  if MOST_OF_GPU == 0 then
    return 0, 0
  end
  local of_node = NODE_GPUS * MOST_OF_GPU
  local all = nodes * of_node
  local tasks = given(job.num_tasks)
  local sockets = given(job.sockets_per_node)
  local asked = {
    { job.tres_per_node, nodes },
    { job.tres_per_job, 1 },
    { job.tres_per_task, tasks },
    { job.tres_per_socket, sockets and sockets * nodes },
  }
  -- They are ways to say the same, so that the largest counts.
  local most, on_node, is_asked = 0, of_node, false
  for place = 1, 4 do
    local count, watts = read_gpus(asked[place][1])
    local times = asked[place][2]
    if not count or (count > 0 and not times) then
      return all, of_node
    end
    if count > 0 then
      is_asked = true
      most = math.max(most, watts * times)
      on_node = place == 1 and watts or on_node
    end
  end
  local share = given(job.ntasks_per_gpu) or given(job.ntasks_per_tres)
  if share and share > 0 and not is_asked then
    if not tasks then
      return all, of_node
    end
    most = math.ceil(tasks / share) * MOST_OF_GPU
  end
  return most, math.min(most, on_node)
end

local function watts_per_node(names, words)
  if words.app and APP_WATTS[words.app] then
    return APP_WATTS[words.app]
  end
  local watts = 0
  for _, name in ipairs(names) do
    watts = math.max(watts, PARTITION_WATTS[name] or NODE_WATTS)
  end
  return watts > 0 and watts or NODE_WATTS
end

-- The licences of a job without Busbar's.
local function other_licences(licences)
  local kept = {}
  for part in string.gmatch(licences or "", "[^,;]+") do
    local name = string.match(part, "^%s*([^:=@(%s]*)")
    if name ~= LICENCE and (LAYERED == "" or name ~= LAYERED) then
      kept[#kept + 1] = part
    end
  end
  return kept
end

-- The licences of a job on so many nodes, with one for each watt, and how many those are.
local function licences_for(job, nodes, names, words)
  local of_node = watts_per_node(names, words)
  local of_gpus, of_gpus_on_node = gpu_watts(job, nodes)
  local watts = math.ceil(nodes * of_node + of_gpus)
  local licences = other_licences(job.licenses)
  licences[#licences + 1] = string.format("%s:%d", LICENCE, watts)
  if LAYERED ~= "" then
    -- Slurm counts this for each node.
    licences[#licences + 1] = string.format("%s:%d", LAYERED, math.ceil(of_node + of_gpus_on_node))
  end
  return table.concat(licences, ","), watts
end

-- Whether only some of the partitions are Busbar's; the user is told.
local function is_mixed(names)
  local ours = count_ours(names)
  if ours == 0 or ours == #names then
    return false
  end
  slurm.log_user("busbar: the job names partitions that Busbar looks after and others; name only the ones or the others")
  return true
end

function busbar_submit(job_desc, part_list, submit_uid)
  local mode = mode_now()
  if mode == "watch" then
    return slurm.SUCCESS
  end
  local names = partitions_of(job_desc, part_list)
  if count_ours(names) == 0 then
    return slurm.SUCCESS
  end
  if is_mixed(names) then
    return slurm.ERROR
  end
  local words, wrong = read_words(job_desc.comment)
  if not words then
    slurm.log_user("%s", wrong)
    return slurm.ERROR
  end
  if given(job_desc.het_job_offset) then
    slurm.log_user("busbar: heterogeneous jobs are not supported; submit the parts as separate jobs")
    return slurm.ERROR
  end
  if MODE == "admit" or FAIL == "admit" then
    if string.find(job_desc.licenses or "", "|", 1, true) then
      -- Slurm takes either a choice of licences or several of them, and one for each watt must be among them.
      slurm.log_user("busbar: a choice of licences ('|') is not possible here, as the watts of a job are licences too; name one of them")
      return slurm.ERROR
    end
    if job_desc.licenses then
      -- Watts are for Busbar to give.
      job_desc.licenses = table.concat(other_licences(job_desc.licenses), ",")
    end
  end
  if mode == "steer" then
    if OPERATORS[submit_uid] and string.match(job_desc.dependency or "", "^expand:") then
      -- Busbar itself gives a running job more nodes.
      return slurm.SUCCESS
    end
    if job_desc.priority == 0 then
      -- The user's own hold becomes a wish.
      job_desc.comment = with_wait(job_desc.comment)
    end
    job_desc.priority = 0
    job_desc.admin_comment = MARK
    if not SHARED then
      job_desc.shared = 0
    end
    return slurm.SUCCESS
  end
  if mode == "stand-in" then
    -- A daemon that comes back starts it, unless it runs by then.
    job_desc.admin_comment = MARK
    if job_desc.priority == 0 then
      job_desc.comment = with_wait(job_desc.comment)
    end
  end
  local nodes = most_nodes(job_desc)
  local licences, watts = licences_for(job_desc, nodes, names, words)
  job_desc.licenses = licences
  -- No more nodes than are paid for, and no others' jobs on them.
  job_desc.max_nodes = nodes
  job_desc.min_nodes = math.min(given(job_desc.min_nodes) or nodes, nodes)
  job_desc.shared = 0
  slurm.log_user("busbar: the job counts with %d W", watts)
  return slurm.SUCCESS
end

-- How many nodes a job is to get that was submitted without being counted: as many as it needs. Some versions let a job without
-- a number of nodes have as many as it has tasks.
local function nodes_needed(job_rec)
  local cpus = given(job_rec.min_cpus) or 1
  local spread = NODE_CPUS > 0 and math.ceil(cpus / NODE_CPUS) or cpus
  local nodes = math.max(given(job_rec.min_nodes) or 1, spread, 1)
  local most = given(job_rec.max_nodes) or 0
  return most > 0 and math.min(nodes, most) or nodes
end

-- How many nodes a job that was counted may get.
local function nodes_counted(job_rec)
  local nodes = given(job_rec.max_nodes) or 0
  return nodes > 0 and nodes or given(job_rec.min_nodes) or 1
end

-- Whether an update lets a job start that was held.
local function releases(job_desc)
  return job_desc.priority ~= nil and job_desc.priority ~= slurm.NO_VAL and job_desc.priority ~= 0
end

-- A job that waits counts with other watts if it moves to another partition or names another application, whoever does that; and
-- it is counted for the first time when it is released while no daemon is there.
local function count_again(job_desc, job_rec, part_list, is_stand_in)
  local is_waiting = (given(job_rec.job_state) or 0) % 256 == 0
  local changes = job_desc.partition or job_desc.comment or (is_stand_in and releases(job_desc))
  if not is_waiting or job_desc.licenses or not changes then
    return
  end
  local partition = job_desc.partition or job_rec.partition
  local names = partitions_of({ partition = partition }, part_list)
  local words = read_words(job_desc.comment or job_rec.comment)
  local nodes = is_stand_in and nodes_needed(job_rec) or nodes_counted(job_rec)
  local job = {
    licenses = job_rec.licenses,
    tres_per_node = job_rec.tres_per_node,
    tres_per_job = job_rec.tres_per_job,
    tres_per_task = job_rec.tres_per_task,
    tres_per_socket = job_rec.tres_per_socket,
  }
  local licences = licences_for(job, nodes, names, words or {})
  if licences ~= job_rec.licenses then
    job_desc.licenses = licences
  end
  if is_stand_in and given(job_rec.max_nodes) ~= nodes then
    -- No more nodes than are paid for.
    job_desc.max_nodes = nodes
  end
end

-- Whether somebody wants to change the GPUs of a job, which are counted.
local function changes_gpus(job_desc, job_rec)
  local is_by_task = given(job_desc.num_tasks) and read_gpus(job_rec.tres_per_task) ~= 0
  local changes = is_by_task
    or job_desc.tres_per_node
    or job_desc.tres_per_job
    or job_desc.tres_per_task
    or job_desc.tres_per_socket
    or given(job_desc.ntasks_per_tres)
  return MOST_OF_GPU > 0 and changes
end

-- Whether a job is Busbar's to release: its mark may go on with why it waits.
local function is_marked(job_rec)
  local comment = job_rec.admin_comment or ""
  return comment == MARK or string.sub(comment, 1, #MARK + 1) == MARK .. ":"
end

function busbar_modify(job_desc, job_rec, part_list, modify_uid)
  local mode = mode_now()
  if mode == "watch" then
    return slurm.SUCCESS
  end
  local is_stand_in = mode == "stand-in" and is_marked(job_rec)
  local names = partitions_of({ partition = job_rec.partition }, part_list)
  local wanted = job_desc.partition and partitions_of(job_desc, part_list) or names
  if OPERATORS[modify_uid] then
    if (mode == "admit" or is_stand_in) and count_ours(wanted) > 0 then
      count_again(job_desc, job_rec, part_list, is_stand_in)
    end
    return slurm.SUCCESS
  end
  if job_desc.partition and is_mixed(wanted) then
    return slurm.ERROR
  end
  if count_ours(names) == 0 then
    if count_ours(wanted) > 0 then
      slurm.log_user("busbar: a job cannot be moved into a partition that Busbar looks after; submit it there")
      return slurm.ERROR
    end
    return slurm.SUCCESS
  end
  if count_ours(wanted) == 0 then
    slurm.log_user("busbar: the job cannot be moved out of Busbar's partitions; submit it again")
    return slurm.ERROR
  end
  if job_desc.comment then
    local words, wrong = read_words(job_desc.comment)
    if not words then
      slurm.log_user("%s", wrong)
      return slurm.ERROR
    end
  end
  if FAIL == "admit" and job_desc.licenses then
    slurm.log_user("busbar: the licences of a job cannot be changed, as they count its watts while Busbar is away; submit it again")
    return slurm.ERROR
  end
  if MODE == "steer" and not is_marked(job_rec) then
    return slurm.SUCCESS
  end
  if mode == "steer" then
    if job_desc.req_nodes then
      slurm.log_user("busbar: Busbar chooses the nodes of this job")
      return slurm.ERROR
    end
    if job_desc.priority ~= nil and job_desc.priority ~= slurm.NO_VAL then
      -- Holding and releasing are wishes to Busbar, which starts the job when there is power for it.
      local comment = job_desc.comment or job_rec.comment
      if job_desc.priority == 0 then
        job_desc.comment = with_wait(comment)
      else
        local rest = without_wait(comment)
        -- An empty comment would be taken for none given.
        job_desc.comment = rest ~= "" and rest or " "
      end
      job_desc.priority = slurm.NO_VAL
    end
    return slurm.SUCCESS
  end
  if is_stand_in and job_desc.priority ~= nil and job_desc.priority ~= slurm.NO_VAL then
    -- Slurm does that now, and a daemon that comes back finds the wish.
    local comment = job_desc.comment or job_rec.comment
    local wished = releases(job_desc) and without_wait(comment) or with_wait(comment)
    job_desc.comment = wished ~= "" and wished or " "
  end
  if job_desc.licenses or given(job_desc.min_nodes) or given(job_desc.max_nodes) then
    slurm.log_user("busbar: the nodes and licences of a job decide about its watts; submit it again to change them")
    return slurm.ERROR
  end
  if changes_gpus(job_desc, job_rec) then
    slurm.log_user("busbar: the GPUs of a job decide about its watts; submit it again to change them")
    return slurm.ERROR
  end
  count_again(job_desc, job_rec, part_list, is_stand_in)
  return slurm.SUCCESS
end

function slurm_job_submit(job_desc, part_list, submit_uid)
  return busbar_submit(job_desc, part_list, submit_uid)
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  return busbar_modify(job_desc, job_rec, part_list, modify_uid)
end

slurm.log_info("busbar: job_submit.lua version @VERSION@, mode %s", MODE)
return slurm.SUCCESS
